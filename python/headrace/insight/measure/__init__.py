# SPDX-License-Identifier: Apache-2.0
"""Times loops and samples the machine meanwhile: measurements, without conclusions.

`loop` times a loop, `tally` times a script's loop, `paired` compares two loaders; `recording` keeps
what happened when. `process_sampler`, `contention` and `thread_clock` measure the use of cores and
the GIL; `machine`, `copying` and `file_reads` what the machine, its links and its storage can do.
`time_limit` interrupts code that hangs, `whereabouts` finds out where. `rendezvous` exchanges
values between the ranks of a machine. The doctor and the watch are built on these modules.
"""
