"""What `cheetah-backup` is made of."""
