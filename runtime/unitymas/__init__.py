"""UnityMAS trains teams of LLM agents by reinforcement learning."""
