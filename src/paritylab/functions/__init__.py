"""Users' own functions: what they are made of, how a change is noticed, and how they travel to other processes."""
