"""Processes of Spark beside the driver: Python workers, those that plan a query, and executors in pods.

Begin with `daemon`, which forks the workers. `before_first_batch` starts one early, and ends the processes
that plan a query. `connection_exchange` lets a group stay with a worker, and `unzipped_home` lets workers
import from files. `kubernetes_executor` is the command of an executor's pod.
"""
