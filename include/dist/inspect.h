/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * Inspection: traces, metrics and descriptions of what the replicas do and did.
 *
 *     static void write_text(const char *text, size_t size_bytes, void *file) {
 *       fwrite(text, 1, size_bytes, (FILE *)file);
 *     }
 *
 *     dist_strategy_explain(strategy, write_text, stdout);                // configuration of the strategy
 *     dist_strategy_write_trace(strategy, write_text, trace);             // open the file in Perfetto
 *     dist_strategy_write_metrics(strategy, NULL, write_text, scrape);    // a page for Prometheus
 *
 * A flight recorder is always on. Each replica records its last 1,024 events (runs and collectives): when it arrived,
 * when all members had arrived, when it continued, and the parameters. It also keeps totals over its whole life.
 * Recording costs a few nanoseconds per collective and needs no allocations, locks or system calls. Reading does not
 * disturb the replicas; you can read while they run or hang.
 *
 * dist_host_options.recorded_events sets the number of events per replica, up to 2^20, and of events that a worker
 * records outside its replicas. Their memory, 128 bytes per event, is allocated from the strategy's allocator when the
 * strategy is created, but is not touched until an event is written. So a long ring initially costs only address space.
 * Writing a trace or computing the straggler table takes about 200 more bytes per recorded event. A re-formed strategy
 * (dist_strategy_reform()) starts with an empty ring of the same length. The lists of servers and coordinators have a
 * fixed length. Runs inside merge functions and runs on logical devices are not traced.
 *
 * With several workers (workers.h), each worker records its own replicas, whose ids count the replicas of all workers.
 * It also records what it does with other workers outside replica functions: reductions, checkpoints and so on. A
 * reduce_apply over several workers is recorded as an all_reduce followed by a local reduce_apply.
 */
#ifndef DIST_INSPECT_H
#define DIST_INSPECT_H

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Describes how the strategy uses this machine, for human readers. The first three lines are a summary:
 *
 *     libdist 0.2.0: mirrored strategy with 2 replicas on 1 worker; threads: 2 library threads
 *     machine: 2 usable CPUs, 1 NUMA domain, SIMD target AVX3, 1.131 MiB of memory held
 *     warnings: none
 *
 * The third line lists what needs attention, such as "8 replicas share 2 usable CPUs". Details follow in groups
 * (Replicas, Threads, Machine, Synchronization, Collectives, Serving, Memory and tracing), one "  subject: text" per
 * line. The text may change in any version, so programs should not parse it.
 *
 * Blocks   Only while fn runs.
 * Errors   INVALID_ARGUMENT     an argument is NULL.
 *          FAILED_PRECONDITION  called in a forked child.
 *          RESOURCE_EXHAUSTED   out of memory.
 */
DIST_API DIST_NODISCARD dist_status dist_strategy_explain(dist_strategy *strategy, dist_text_fn fn,
                                                          void *user_data);

/**
 * Writes the recorded events as a trace in Chrome's trace-event format (JSON), for Perfetto (ui.perfetto.dev) or
 * chrome://tracing.
 *
 *   - Each replica is a thread, with a slice for each run and each collective in it. Arguments of a collective:
 *     sequence number, group, op, dtype, bytes, tag, status, the last replica to arrive, and how much later than all
 *     others it arrived.
 *   - Inside the slice of a collective, a slice "wait" lasts until all members had arrived. An arrow leads from the
 *     last replica to the one that waited longest.
 *   - Unfinished operations are included, with the replicas that they wait for. Asynchronous collectives have rows of
 *     their own.
 *   - A request (dist_submit()) is a slice "request" on the row of its replica, with its id and the time for which it
 *     was queued; a slice "queued" on another row shows that time.
 *   - The trace of a parameter-server strategy includes the closures of its coordinator
 *     (dist_coordinator_write_trace()).
 *
 * Times are from the system's steady clock.
 *
 * With several workers, each worker writes its own trace: the pid is the number of the worker, the tid is the id of the
 * replica, and the tid after the last replica of all workers stands for what the worker does outside replicas. A
 * collective names the worker and replica that arrived last, like dist_strategy_stragglers(), and, while it waits, the
 * number of missing workers and the lowest of them. Process, thread and arrow ids are unique across the traces, so you
 * can join their event lists:
 *
 *     jq -s '{displayTimeUnit: "ns", traceEvents: map(.traceEvents[])}' worker*.json > all.json
 *
 * Steady clocks of different machines have different origins, so the rows of different machines are not aligned in
 * time; rows of one machine are.
 *
 * Blocks   Only while fn runs.
 * Errors   INVALID_ARGUMENT     an argument is NULL.
 *          FAILED_PRECONDITION  called in a forked child.
 *          RESOURCE_EXHAUSTED   out of memory; a part of the text may have been written.
 */
DIST_API DIST_NODISCARD dist_status dist_strategy_write_trace(dist_strategy *strategy, dist_text_fn fn,
                                                              void *user_data);

/**
 * Writes counters and gauges in Prometheus' text exposition format, as a page for a scrape.
 *
 *     dist_info, dist_replicas (those of all workers), dist_memory_held_bytes
 *     dist_runs_total, dist_run_seconds_total, dist_run_errors_total{status}                  per replica
 *     dist_collectives_total, dist_collective_bytes_total{collective},
 *     dist_collective_errors_total{status}, dist_collective_wait_seconds_total                per replica
 *
 * A parameter-server strategy with a coordinator also has:
 *
 *     dist_workers_up, dist_closures_queued, dist_closures_in_flight
 *     dist_closures_scheduled_total, dist_closures_total{end: completed, failed or cancelled}
 *     dist_closure_losses_total
 *     dist_coordinator_sent_bytes_total, dist_coordinator_received_bytes_total
 *
 * A strategy with instances (dist_submit()) also has:
 *
 *     dist_requests_queued, dist_requests_running
 *     dist_requests_accepted_total
 *     dist_requests_refused_total{reason: full (or no memory), closed, cancelled or other}
 *     dist_requests_ended_total{end: completed, failed, cancelled or overdue}
 *     dist_instances_replaced_total, dist_instances_stuck
 *     dist_request_queue_seconds, dist_request_compute_seconds,
 *     dist_request_wait_seconds                                                               per replica
 *
 * The last three are histograms over the requests whose functions were called: the time from dist_submit() to the call,
 * the time inside the function, and the sum of both. Bucket bounds are powers of two from 1 us to 16.8 s. A time may be
 * counted as up to a quarter longer than it was, but never as shorter.
 *
 * A strategy with batchers (batch.h), whose steps do not count as requests, also has, for each batcher:
 *
 *     dist_items_waiting, dist_items_active
 *     dist_items_accepted_total, dist_items_refused_total{reason: like requests}
 *     dist_items_ended_total{end: like requests}
 *     dist_item_queue_seconds, dist_item_wait_seconds, dist_batch_compute_seconds, dist_batch_items
 *
 * The last four are histograms: the time of an item from dist_batcher_submit() to its first step, and to its
 * completion; the time of a completed step inside the function; and its number of items, by powers of two up to 4096.
 * The label `batcher` is 0 for the first batcher. A later batcher gets the lowest free number, and its counters start
 * at 0.
 *
 * `name` becomes the label `strategy` of every sample, for processes with several strategies; NULL omits the label.
 * With several workers, every sample has the label `worker`, and `replica` is the id among the replicas of all workers.
 *
 * Blocks   Only while fn runs.
 * Errors   INVALID_ARGUMENT     strategy or fn is NULL.
 *          FAILED_PRECONDITION  called in a forked child.
 */
DIST_API DIST_NODISCARD dist_status dist_strategy_write_metrics(dist_strategy *strategy, const char *name,
                                                                dist_text_fn fn, void *user_data);

/** How often a replica was the last one to arrive at the rounds of one tag, collective and group. */
typedef struct dist_straggler {
  dist_collective collective;
  int32_t group;                /* number of the group of replicas; 0 = all replicas */
  int32_t replica;              /* id of the replica; -1 = the worker itself, outside replica functions */
  int32_t worker;               /* worker of the replica; 0 in a strategy of one process */
  int64_t rounds;               /* number of rounds of this tag, collective and group */
  int64_t times_last;           /* rounds in which this replica was last; at least 1 */
  int64_t mean_late_ns;         /* mean time for which all others, already present, waited for it */
  int64_t max_late_ns;          /* longest such time */
  char tag[DIST_MAX_TAG_BYTES]; /* "" = no tag */
} dist_straggler;

/**
 * Lists the replicas that arrive last: a table over the successful rounds that are still recorded, sorted by how often
 * a replica was last.
 *
 * With several workers, each worker computes a table of its own from durations, because their clocks differ. A worker
 * measures how long it waited for each other worker after its own replicas had all arrived. Each worker also reports
 * which of its replicas arrived last and how long its other replicas, already present, waited for it. Then:
 *
 *   - The last replica is the one reported by the worker for which this worker waited longest. If this worker waited
 *     for none, it is its own last replica.
 *   - A replica of another worker is charged with the time in which only it was missing: since the previous worker, or
 *     the previous replica of its own worker, had arrived. This equals the result in one process with all replicas,
 *     plus the time that a message takes.
 *   - A replica of this worker is charged with the time for which this worker's other replicas waited for it, or 0 if
 *     there are none. The times for which other workers waited for it are in their tables.
 *
 * All tables therefore name the same replica if it is late by more than the time of a message. If replicas of two
 * workers arrive closer together, each of the two may name the other's.
 *
 * `out` has room for `capacity` rows of `row_bytes` bytes, the caller's sizeof(dist_straggler). *out_n is the number of
 * rows, which can exceed capacity.
 *
 * Errors   INVALID_ARGUMENT     an argument is NULL (`out` may be NULL if capacity is 0), or row_bytes is not a valid
 *                               size.
 *          FAILED_PRECONDITION  called in a forked child.
 *          RESOURCE_EXHAUSTED   out of memory.
 */
DIST_API DIST_NODISCARD dist_status dist_strategy_stragglers(dist_strategy *strategy, dist_straggler *out,
                                                             size_t row_bytes, size_t capacity,
                                                             size_t *out_n);

/**
 * Writes a description of how a dataset is read: its source, how batches are made, what this worker and each of its
 * replicas get of them, and what is lost at the end.
 *
 * Blocks   Only while fn runs.
 * Errors   INVALID_ARGUMENT  an argument is NULL.
 */
DIST_API DIST_NODISCARD dist_status dist_dataset_explain(dist_dataset *dataset, dist_text_fn fn,
                                                         void *user_data);

/**
 * Writes a value as text, on one line, identically on every machine and in every locale:
 *
 *     a tensor            f32 1.5      i64[2, 2] [[1, 2], [3, 4]]      bool[2, 0] []
 *     distributed         PerReplica: 0: f32 1, 1: f32 2     Mirrored: 0: ..., 1: ...
 *     a variable          like dist_variable_describe()
 *     list, tuple, dict   [f32 1, None]      (f32 1, "text")      {"loss": f32 1}
 *     composites          IndexedSlices(values: ..., indices: ..., dense_shape: ...), Ragged(...), Sparse(...)
 *     host pointer        Object
 *
 * A distributed value inside another value is enclosed in braces. Numbers are the shortest that read back as the same
 * bits. For more than 1,000 elements or items, each dimension shows its first three and last three.
 *
 * Blocks   Only while fn runs.
 * Errors   INVALID_ARGUMENT  an argument is NULL.
 */
DIST_API DIST_NODISCARD dist_status dist_value_describe(const dist_value *value, dist_text_fn fn,
                                                        void *user_data);

/**
 * Writes the copies of a variable as text, on one line, like dist_value_describe():
 *
 *     MirroredVariable: 0: "w" f32[2] [1, 2], 1: "w/replica_1" f32[2] [1, 2]
 *
 * The name is SyncOnReadVariable if the variable is synchronized on reading, AggregatingVariable for the single copy of
 * central storage, and Variable for the one-device and the default strategy.
 *
 * This call is not queued with the strategy's runs. While a run or an assignment writes the variable, the text may mix
 * old and new numbers, even within one copy, and a number may be torn. dist_variable_read() waits for its turn instead.
 *
 * Blocks   Only while fn runs.
 * Errors   INVALID_ARGUMENT  an argument is NULL.
 */
DIST_API DIST_NODISCARD dist_status dist_variable_describe(const dist_variable *variable, dist_text_fn fn,
                                                           void *user_data);

/** Where the copies of a variable differ. */
typedef struct dist_drift {
  uint32_t struct_size;
  /* number of copies compared, of all workers; 0 = synchronized on reading, so copies need not be equal */
  int32_t num_copies;
  /* replica whose copy differs from most others, counted over all workers; -1 = all are equal */
  int32_t replica;
  int32_t expected_replica; /* first replica whose copy has the value of most; -1 = all are equal */
  int64_t element;          /* first element that differs, counted in row-major order; -1 = all are equal */
} dist_drift;
#define DIST_DRIFT_INIT \
  { sizeof(dist_drift), 0, 0, 0, 0 }

/**
 * Checks that the copies of a variable are equal, as they are if every replica computed the same.
 *
 * At the first element that differs, the value of most copies counts as correct (in a tie, that of the lowest replica),
 * and the lowest replica with another value is reported. Bits are compared, so -0 differs from 0; but all NaNs are
 * equal, and so are all true bools.
 *
 * With several workers (workers.h), all workers must call this for the same variable, and the copies of all workers are
 * compared; each worker gets the result that one process with all replicas would get. The workers exchange digests of
 * 64 bits, so a copy that differs from that of another worker is taken for equal with a probability of 1 in 2^64. If
 * copies differ, they also exchange up to 4 KiB for each 256th part that is searched for the element, and that element,
 * but never the whole variable.
 *
 * Context  Strategy, serialized for a variable; also inside a merge function.
 * Blocks   Until it is complete (oneTBB threads share the work on large variables). With several workers, also until
 *          the others arrive, up to the strategy's timeout_ns in each of a few exchanges.
 * Owns     out_drift may be NULL; otherwise its struct_size limits how many bytes are written. It is written on DIST_OK
 *          and on DATA_LOSS.
 * Errors   DATA_LOSS            the copies differ. dist_last_error_info() has the replica and its worker, the
 *                               variable's name as tag, and the two elements as expected and received.
 *          INVALID_ARGUMENT     an argument is NULL; struct_size is invalid; a variable of another strategy. With
 *                               several workers: a worker passes a variable of another name, dtype, shape or kind, or
 *                               makes another call; all workers get a report that names it.
 *          DEADLINE_EXCEEDED    a worker did not arrive in time; all others get this error.
 *          UNAVAILABLE          a worker is lost; all others get this error.
 *          ABORTED              a worker failed in its call; all others get this error.
 *          CANCELLED            dist_strategy_cancel() was called while this call waited for other workers.
 *          FAILED_PRECONDITION  called inside a replica function or in a forked child.
 *          RESOURCE_EXHAUSTED   out of memory.
 */
DIST_API DIST_NODISCARD dist_status dist_variable_check_drift(dist_strategy *strategy,
                                                              dist_variable *variable, dist_drift *out_drift);

#ifdef __cplusplus
}
#endif
#endif /* DIST_INSPECT_H */
