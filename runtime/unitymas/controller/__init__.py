"""The controller: the centre of the star. Schedules, runs, rewards, trains, checkpoints, evaluates."""
