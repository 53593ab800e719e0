"""The modules of `cheetah-migrate`, which converts connected tables between the engines."""
