"""The modules of `cheetah-backup`."""
