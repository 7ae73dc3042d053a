"""What is kept: Records and other results on disk, each whole or not at all."""
