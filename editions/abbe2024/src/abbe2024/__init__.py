"""The claims of abbe2024, Learning High-Degree Parities."""
