"""The fleet on one machine, for `tamis up`, `tamis demo` and tests.

`broker` runs a real Kafka as a child process, `service_process` runs one service, and `fleet` starts all of
them in order. `supervisor` restarts a process that has ended. The kernel ends each child when its parent dies
(`parent_death_signal`), so that no process is left behind. Services don't import this package.
"""
