"""Tests of logins and rights with one secure broker, which ends with the last of them."""
