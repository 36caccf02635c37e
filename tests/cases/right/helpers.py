"""What the python tool of these manifests calls."""


def grade(answer: str, gold: list[str]) -> dict[str, float]:
    """1 for a right answer."""
    return {"grade": float(answer in gold)}
