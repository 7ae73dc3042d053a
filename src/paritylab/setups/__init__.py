"""What is asked: a Problem, a Learner and a Protocol make a Setup, which has an id."""
