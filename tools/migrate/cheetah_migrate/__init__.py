"""The modules of `cheetah-migrate`, which converts tables connected by constraints from InnoDB to
Cheetah and back."""
