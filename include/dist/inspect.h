/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * Looking inside: what replicas do and did, as text.
 *
 * A flight recorder is always on. Each replica keeps its last 1,024 events, runs and collectives: when it came, when all had
 * come, when it went on, and with what; and sums over all that it ever did. That costs some nanoseconds a collective,
 * no allocation, lock or system call; reading disturbs nobody, so that it is fine while replicas run, or hang.
 *
 * dist_strategy_options.recorded_events asks for more or fewer events, up to 2^20 of each replica, and of what a worker does
 * outside of its replicas. Their memory, 128 bytes each, comes from the strategy's allocator when the strategy is created, and
 * is not touched before an event is written there: a long ring costs address space at first, and no time. While a trace or a
 * table of stragglers is made, each event that there is takes some 200 bytes more. A strategy that is formed anew
 * (dist_strategy_reform()) begins a new ring of that length. Servers and coordinators keep lists
 * of their own, as long as ever; runs inside merge functions, and those of logical devices, are in no trace.
 *
 * Of several workers (workers.h) each records its own replicas, whose ids count those of all workers, and what it does with
 * others outside of its replicas' functions: reductions, checkpoints and the like. A reduce_apply over workers is recorded
 * as the all_reduce that it begins with, and a reduce_apply of the worker's own.
 */
#ifndef DIST_INSPECT_H
#define DIST_INSPECT_H

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Describes, for people, how the strategy uses this machine. The first three lines are a summary:
 *
 *     libdist 0.2.0: mirrored strategy with 8 replicas on 1 worker; threads: the caller of dist_run() and 7 library threads
 *     machine: 2 usable CPUs, 1 NUMA domain, SIMD target AVX3, 1.131 MiB of memory held
 *     warnings: 8 replicas share 2 usable CPUs
 *
 * The third line is "warnings: none" if nothing needs attention. Details follow in groups (Replicas, Threads, Machine,
 * Synchronization, Collectives, Serving, Memory and tracing), one "  subject: text" per line. The text may change in any
 * version, so programs should not parse it.
 *
 * Blocks   Never, but for fn.
 * Errors   INVALID_ARGUMENT NULL. FAILED_PRECONDITION a forked child. RESOURCE_EXHAUSTED no memory.
 */
DIST_API DIST_NODISCARD dist_status dist_explain(dist_strategy *strategy, dist_text_fn fn, void *user_data);

#ifdef __cplusplus
}
#endif
#endif /* DIST_INSPECT_H */

/* ---- Experimental: what follows may change or go in any version, as types.h says ------------------- */

#if defined(DIST_EXPERIMENTAL) && !defined(DIST_INSPECT_EXPERIMENTAL_H)
#define DIST_INSPECT_EXPERIMENTAL_H

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Writes what the recorder holds as a trace: JSON of Chrome's trace-event format, to be opened in Perfetto
 * (ui.perfetto.dev) or chrome://tracing.
 *
 * One thread a replica; a slice for each run and each collective in it (arguments: sequence number, group, op, dtype,
 * bytes, tag, status, who came last and how much later than all others), in that a slice "wait" until all had come, and
 * an arrow from the last to come to who waited longest. What has only begun is there too, with the replicas that it
 * waits for. Asynchronous collectives have rows of their own. Times are the system's steady clock.
 *
 * A request (dist_submit()) is a slice "request" on the row of the replica that ran it, with its id and how long it was
 * queued; a slice "queued" in a row of its own is that time.
 *
 * Of several workers each writes a trace of its own, in which the process is the worker (pid: its number), a thread is a
 * replica (tid: its id), and the one behind the last replica of all is what the worker does outside of replicas. A
 * collective says which worker's replica came last, as dist_stragglers() has it, and, while it waits for others, how many
 * workers are missing and the lowest of these. No process, thread or arrow of one trace has the number of one in
 * another, so that their lists of events can be joined:
 *
 *     jq -s '{displayTimeUnit: "ns", traceEvents: map(.traceEvents[])}' worker*.json > all.json
 *
 * The trace of a parameter-server strategy has its coordinator's closures, too (dist_coordinator_write_trace()).
 *
 * Clocks of several machines begin at different times, so that their rows do not stand beside each other; those of one
 * machine do.
 *
 * Blocks   Never, but for fn.
 * Errors   INVALID_ARGUMENT NULL. FAILED_PRECONDITION a forked child. RESOURCE_EXHAUSTED no memory; then some of the
 *          text may have been written.
 */
DIST_API DIST_NODISCARD dist_status dist_write_trace(dist_strategy *strategy, dist_text_fn fn,
                                                     void *user_data);

/**
 * Writes counters and gauges in Prometheus' text exposition format, a page for a scrape.
 *
 *     dist_info, dist_replicas (those of all workers), dist_memory_held_bytes
 *     dist_runs_total, dist_run_seconds_total, dist_run_errors_total{status}                  for each replica
 *     dist_collectives_total, dist_collective_bytes_total{collective},
 *     dist_collective_errors_total{status}, dist_collective_wait_seconds_total                for each replica
 *
 * and of a parameter-server strategy that has a coordinator
 *
 *     dist_workers_up, dist_closures_queued, dist_closures_in_flight
 *     dist_closures_scheduled_total, dist_closures_total{end: completed, failed or cancelled}, dist_closure_losses_total
 *     dist_coordinator_sent_bytes_total, dist_coordinator_received_bytes_total
 *
 * and of a strategy with instances (dist_submit())
 *
 *     dist_requests_queued, dist_requests_running
 *     dist_requests_accepted_total, dist_requests_refused_total{reason: full (or no memory), closed, cancelled or other}
 *     dist_requests_ended_total{end: completed, failed, cancelled or overdue}
 *     dist_instances_replaced_total, dist_instances_stuck
 *     dist_request_queue_seconds, dist_request_compute_seconds,
 *     dist_request_wait_seconds                                                               for each replica
 *
 * The last three are histograms of the requests whose functions were called: from dist_submit() until then, inside the
 * function, and both. Their bounds are powers of two from 1 us to 16.8 s; a time may count as up to a quarter longer than it
 * was, never as shorter. And where it has batchers (batch.h), whose steps are no requests
 *
 *     dist_items_waiting, dist_items_active
 *     dist_items_accepted_total, dist_items_refused_total{reason: as of requests}, dist_items_ended_total{end: as of requests}
 *     dist_item_queue_seconds, dist_item_wait_seconds, dist_batch_compute_seconds, dist_batch_items       for each batcher
 *
 * The last four are histograms: of the items that a step had, from dist_batcher_submit() until then, and until the end; of
 * the steps that are over, the time inside the function, and the number of items, by powers of two up to 4096. The label
 * `batcher` is 0 for the first one; one that is made later has the least number that is free, and counts from 0 on.
 *
 * `name` becomes the label `strategy` of every sample, for processes that have several; NULL: no such label. Of several
 * workers every sample has the label `worker`, and `replica` is the id among those of all workers.
 *
 * Blocks   Never, but for fn.
 * Errors   INVALID_ARGUMENT NULL. FAILED_PRECONDITION a forked child.
 */
DIST_API DIST_NODISCARD dist_status dist_write_metrics(dist_strategy *strategy, const char *name,
                                                       dist_text_fn fn, void *user_data);

/** How often a replica was the last to come to the rounds of one tag, collective and group. */
typedef struct dist_straggler {
  int32_t collective; /* a DIST_COLLECTIVE_... */
  int32_t group;      /* which group of replicas met; 0: all */
  int32_t replica; /* its id; -1: the worker itself, where workers met outside of their replicas' functions */
  int32_t worker;  /* the replica's; 0 in a strategy of one process */
  int64_t rounds;  /* of this tag, collective and group, whoever was last */
  int64_t times_last; /* at least 1 */
  /* how long all others, all there, waited for it: the mean of those times, and the longest */
  int64_t mean_late_ns;
  int64_t max_late_ns;
  char tag[DIST_MAX_TAG_BYTES]; /* "" where there was none */
} dist_straggler;

/**
 * Who comes last: a table over the rounds that the recorder still holds and that went well, most often last first.
 *
 * Of several workers, whose clocks differ, each has a table of its own, made of durations. A worker measures how long it
 * waited for each other one, after its own replicas had all come; and each worker says which of its replicas came last,
 * and how long its others, which were all there, waited for that one. Then:
 *
 *   - Last is the replica that the worker names for which this worker waited longest; if it waited for none, its own last.
 *   - Another worker's replica is charged with the time in which it alone was missing: since the worker before it, or the
 *     replica before it on its own worker, had come. That is what one process with all replicas says, and, besides, the
 *     time that a message takes.
 *   - A replica of this worker is charged with what this worker's others waited for it: 0 where there are none. What
 *     other workers waited for it stands in their tables.
 *
 * So all tables name the same replica where it is late by more than a message takes; where replicas of two workers come
 * closer together, each of the two may name the other's.
 *
 * `out` has room for `capacity` rows of `row_bytes` bytes, sizeof(dist_straggler) of the caller; *out_n is how many
 * rows there are, which may be more.
 *
 * Errors   INVALID_ARGUMENT     NULL (`out` may be where capacity is 0), or row_bytes is no size of a row.
 *          FAILED_PRECONDITION  a forked child.
 *          RESOURCE_EXHAUSTED   no memory.
 */
DIST_API DIST_NODISCARD dist_status dist_stragglers(dist_strategy *strategy, dist_straggler *out,
                                                    size_t row_bytes, size_t capacity, size_t *out_n);

/**
 * Writes as text who reads what of a dataset: its source, how batches are made of it, what of them this worker and each
 * of its replicas get, and what is lost at the end.
 *
 * Blocks   Never, but for fn.
 * Errors   INVALID_ARGUMENT NULL.
 */
DIST_API DIST_NODISCARD dist_status dist_dataset_explain(dist_dataset *dataset, dist_text_fn fn,
                                                         void *user_data);

/**
 * Writes a value as text, on one line, the same on every machine and in every locale:
 *
 *     a tensor            f32 1.5      i64[2, 2] [[1, 2], [3, 4]]      bool[2, 0] []
 *     distributed         PerReplica: 0: f32 1, 1: f32 2     Mirrored: 0: ..., 1: ...
 *     a variable          as dist_variable_describe()
 *     list, tuple, dict   [f32 1, None]      (f32 1, "text")      {"loss": f32 1}
 *     composites          IndexedSlices(values: ..., indices: ..., dense_shape: ...), Ragged(...), Sparse(...)
 *     the host's pointer  Object
 *
 * A distributed value inside another value stands in braces. Numbers are the shortest that read back as the same bits.
 * Of more than 1,000 elements, or items, each dimension shows the first three and the last three.
 *
 * Blocks   Never, but for fn.
 * Errors   INVALID_ARGUMENT NULL.
 */
DIST_API DIST_NODISCARD dist_status dist_value_describe(const dist_value *value, dist_text_fn fn,
                                                        void *user_data);

/**
 * Writes a variable's copies as text, on one line, as dist_value_describe() does:
 *
 *     MirroredVariable: 0: "w" f32[2] [1, 2], 1: "w/replica_1" f32[2] [1, 2]
 *
 * SyncOnReadVariable where it is synchronized on reading; AggregatingVariable with the one copy of central storage;
 * Variable where the strategy is one-device or the default.
 *
 * It takes no turn among the strategy's runs: while a run or an assignment writes the variable, the numbers may be of
 * before and of after it, in one copy too, as may the halves of one number. dist_variable_read() waits for its turn.
 *
 * Blocks   Never, but for fn.
 * Errors   INVALID_ARGUMENT NULL.
 */
DIST_API DIST_NODISCARD dist_status dist_variable_describe(const dist_variable *variable, dist_text_fn fn,
                                                           void *user_data);

/** Where the copies of a variable are no longer equal. */
typedef struct dist_drift {
  uint32_t struct_size;
  /* that were compared, of all workers; 0: the variable is synchronized on reading, its copies need not be equal */
  int32_t num_copies;
  int32_t replica;          /* whose copy differs from most others'; -1: all are equal. Of all workers' */
  int32_t expected_replica; /* the first whose copy has what most have; -1: all are equal */
  int64_t element;          /* the first that differs, counted row-major; -1: all are equal */
} dist_drift;
#define DIST_DRIFT_INIT \
  { sizeof(dist_drift), 0, 0, 0, 0 }

/**
 * Whether the copies of a variable are still equal, as they are where every replica computed the same. At the first
 * element that differs, what most copies have counts as right (a tie: what the lowest replica has), and the lowest
 * replica that has something else is reported.
 *
 * Bits are compared: -0 is not 0. But every NaN equals every NaN, and every true bool every true one.
 *
 * Over several workers (workers.h) all of them call it, for the same variable, and the copies of all are compared: each
 * worker gets what one process with all replicas would say. The workers tell each other digests of 64 bits, so that a
 * copy that differs from another worker's is taken for equal with a chance of 1 in 2^64; and, where copies differ, up to
 * 4 KiB for each 256th part in which the element is looked for, and that element: never the whole variable.
 *
 * Context  Strategy, serialized for a variable; also inside a merge function.
 * Blocks   Until it is done (oneTBB shares the work on large variables); over several workers for the others, up to the
 *          strategy's timeout_ns for each of the few times that they meet.
 * Owns     Nothing. out_drift may be NULL; else its struct_size says how much of it to write. It is written on DIST_OK
 *          and on DATA_LOSS.
 * Errors   DATA_LOSS            the copies differ. dist_last_error_info() has the replica and its worker, the variable's
 *                               name as tag, and the two elements as expected and received.
 *          INVALID_ARGUMENT     NULL, a struct_size that is none, another strategy's variable. A worker brings a variable of
 *                               another name, dtype, shape or kind, or another call: all are told which worker.
 *          DEADLINE_EXCEEDED, UNAVAILABLE, ABORTED  a worker is late, lost, or has failed in its call: all others are told.
 *          CANCELLED            dist_strategy_cancel(), of what waits for other workers.
 *          FAILED_PRECONDITION  inside a replica function; a forked child.
 *          RESOURCE_EXHAUSTED   no memory.
 */
DIST_API DIST_NODISCARD dist_status dist_variable_check_drift(dist_strategy *strategy,
                                                              dist_variable *variable, dist_drift *out_drift);

#ifdef __cplusplus
}
#endif
#endif /* DIST_INSPECT_EXPERIMENTAL_H */
