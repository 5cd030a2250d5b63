# SPDX-License-Identifier: Apache-2.0
"""Times loops and samples the machine meanwhile: measuring, without judging.

`loop` times a loop, `tally` one that a script runs, `paired` compares two; `recording` keeps
what happened when. `process_sampler`, `contention` and `thread_clock` tell who had the cores and
the GIL; `machine`, `copying` and `file_reads` what the machine, its links and its storage can do.
`time_limit` gives up what hangs, `whereabouts` says where that was. `rendezvous` lets the ranks of
a machine agree. The doctor and the watch stand on it.
"""
