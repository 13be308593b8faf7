"""Processes of Spark beside the driver: Python workers, those that plan a query, and executors in pods.

`daemon` forks the workers; `first_worker` starts one early, and `frozen_objects` keeps the garbage collector
off the modules that they share. `connection_exchange`, with `worker_table`, lets a group stay with a worker.
`unzipped_home` lets them import from files. `planning_processes` ends the processes that plan a
query. `kubernetes_executor` is the command of an executor's pod.
"""
