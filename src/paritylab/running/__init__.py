"""How it is done: sweeps, races and tasks, here, by a crew of workers or on another machine."""
