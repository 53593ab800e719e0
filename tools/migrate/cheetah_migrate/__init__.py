"""cheetah-migrate: tables, connected by constraints, from InnoDB to Cheetah and back."""
