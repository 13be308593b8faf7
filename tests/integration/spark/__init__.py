"""Tests of `tamis.spark` in one session of Spark, which ends with the last of them."""
