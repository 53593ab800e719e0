"""Build, run and test Cheetah against a private MariaDB; nothing outside the project folder is touched."""
