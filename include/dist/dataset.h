/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * Datasets, whose batches are split over the replicas.
 *
 * A source has elements; batches are made of them; each batch is cut up for the replicas of all workers. What TensorFlow
 * has as transformations of a dataset (map, filter, zip, repeat, ...) is the host's own program in a source.
 */
#ifndef DIST_DATASET_H
#define DIST_DATASET_H

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dist_dataset_options {
  uint32_t struct_size;
  int32_t drop_remainder;    /* 1: leave out a last batch that is not full */
  int64_t global_batch_size; /* elements of a batch for all replicas together; 0: the source's elements are
                                global batches already, and are split as they are */
  int32_t shuffle;           /* 1: another order in every pass, drawn from seed and the pass's number */
  int32_t prefetch;          /* batches made ahead by oneTBB; 0: one where that makes the host's loop faster, which
                                is measured (dist_dataset_explain() says it), and none where the strategy starts
                                no threads (dist_strategy_options.helper_threads); < 0: none
                                (TensorFlow: experimental_per_replica_buffer_size, where none is 0) */
  uint64_t seed;
  int32_t shard_policy; /* DIST_SHARD_...: what of the source goes to which worker */
  /* that read this dataset together, each with as many replicas as this one; 0: those of the strategy (1, but for
   * DIST_STRATEGY_MULTI_WORKER_MIRRORED), as many replicas as they have, and this one; worker_index is 0 then */
  int32_t num_workers;
  int32_t worker_index; /* which of them this one is */
  /* 1: global_batch_size counts what one worker gets of a batch, and with DIST_SHARD_DATA whole batches are
   * dealt out; 0: every batch is cut up for all workers */
  int32_t worker_batches;
  /* 1: the source wants to be sharded element by element, before batches are made of them; only
   * DIST_SHARD_HINT does so, all else fails */
  int32_t shard_hint;
  int32_t interleave; /* files that are read in turn, an element each; 0 or 1: one file after another */
  /* 1: every batch has the same shape; -1: the last ones may be smaller; 0: as it follows from
   * drop_remainder, for rows of tensors that are batches, 1 */
  int32_t static_shapes;
  int32_t replication_mode; /* DIST_INPUT_...; PER_REPLICA only of a function, on mirrored strategies */
  int32_t fetch_to_device;  /* 1, 0: yes, -1: no. Batches lie in the memory that replicas read anyway */
  /* 1: yes; of a function only with PER_REPLICA and fetch_to_device -1. No effect: the device is the host */
  int32_t place_dataset_on_device;
  /* examples of the 1st, 2nd, ... piece, again from the first after the last: the source's examples are cut
   * anew, whatever batches they came in, and replica r of step k gets piece k*R + r. NULL: batches are cut
   * evenly. Copied */
  const int64_t *batch_sizes;
  size_t num_batch_sizes;
  /* 1: replica r of all workers gets what replica r of one process with all of them would: q = ceil(m / N) of N replicas
   * of all workers, and replica n of them all gets piece n. So that W workers of R replicas train to the bits of one
   * process with W*R. TensorFlow has no such option: there workers take turns at the pieces. Every worker reads
   * everything. Only with DIST_SHARD_AUTO and DIST_SHARD_DATA */
  int32_t as_one_process;
  int32_t reserved; /* 0 */
} dist_dataset_options;
#define DIST_DATASET_OPTIONS_INIT \
  { sizeof(dist_dataset_options), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, NULL, 0, 0, 0 }

/** As dist_strategy_options_init(), of dist_dataset_options. */
DIST_API void dist_dataset_options_init(dist_dataset_options *options, uint32_t struct_size_bytes);

/**
 * A dataset of rows: element i is row i of each of n tensors (features, labels, ...).
 *
 *     a batch of m elements, q = ceil(m / R):   replica r gets elements [r*q, min(m, (r+1)*q)) of it, maybe none
 *
 * A partial last batch is cut by its own size: 10 elements in batches of 8 on 2 replicas are 4 and 4, then 1 and 1. Of
 * several workers (options.num_workers = W, > 1), with q = ceil(m / (W*R)), replica r of worker w gets piece r*W + w
 * (DIST_SHARD_DATA); where workers read different elements, or all of them everything, batches are cut anew to the sizes
 * of dist_batch_sizes_for_worker(). Where workers have not all as many replicas, they take turns as long as they have
 * one more. With one replica and one worker nothing is cut: an element that is a batch may be
 * anything, a scalar too.
 *
 * Shape    n >= 1 tensors with equal first dimensions (the number of elements).
 * Order    Without shuffle the tensors' own; with it a permutation that depends on seed and pass alone.
 * Context  Strategy, concurrent.
 * Owns     The data are copied. *out_dataset is the caller's: dist_dataset_destroy().
 * Errors   INVALID_ARGUMENT     NULL, n = 0, a scalar, first dimensions that differ, a batch size < 0, a worker's index
 *                               outside 0 .. num_workers-1 (but for DIST_SHARD_OFF).
 *          NOT_FOUND            DIST_SHARD_FILE of several workers: the source has no files.
 *          UNIMPLEMENTED        replication_mode is DIST_INPUT_PER_REPLICA.
 *          FAILED_PRECONDITION  inside a replica function; a forked child; shard_hint without DIST_SHARD_HINT.
 *          RESOURCE_EXHAUSTED   no memory.
 */
DIST_API DIST_NODISCARD dist_status dist_dataset_create_from_tensors(dist_strategy *strategy,
                                                                     const dist_tensor *tensors, size_t n,
                                                                     const dist_dataset_options *options,
                                                                     dist_dataset **out_dataset);

/**
 * Makes element `index` (0, 1, 2, ... in each pass; one that continues at a position begins there) and hands it over with
 * its reference: a tensor, or a list, tuple or dictionary of elements. DIST_OUT_OF_RANGE ends the pass. Called from one
 * thread at a time, maybe not the caller's. It must not throw; runs, variables' values and iterators' batches are refused there.
 */
typedef dist_status (*dist_source_fn)(int64_t index, dist_value **out_element, void *user_data);

/**
 * A dataset whose elements a callback makes. With a global batch size, that many elements of equal structure,
 * dtypes and shapes are stacked along a new first dimension; without, each element is a batch. Texts and objects of the
 * host's stack to lists of them; nothing (DIST_VALUE_NONE) stays nothing. Ragged and sparse tensors are cut by rows.
 *
 * Shape    As dist_dataset_create_from_tensors(). `shuffle` must be 0: the source has its own order.
 * Order    The source's.
 * Context  Strategy, concurrent.
 * Owns     fn and user_data are used until the dataset and its iterators have ended; then release(user_data),
 *          unless release is NULL. *out_dataset is the caller's: dist_dataset_destroy().
 * Errors   As dist_dataset_create_from_tensors(); INVALID_ARGUMENT also where shuffle is set.
 */
DIST_API DIST_NODISCARD dist_status dist_dataset_create_from_callback(dist_strategy *strategy,
                                                                      dist_source_fn fn, void *user_data,
                                                                      dist_release_fn release,
                                                                      const dist_dataset_options *options,
                                                                      dist_dataset **out_dataset);

/** For which part of the input a function makes a dataset (TensorFlow: tf.distribute.InputContext). */
typedef struct dist_input_context {
  int32_t num_input_pipelines; /* one a worker, or one a replica */
  int32_t input_pipeline_id;
  int32_t num_replicas_in_sync;
} dist_input_context;
#define DIST_INPUT_CONTEXT_INIT \
  { 1, 0, 1 }

/**
 * What one replica gets of a global batch.
 *
 *     *out_size = global_batch_size / context->num_replicas_in_sync
 *
 * Errors   INVALID_ARGUMENT  NULL, a size that is no multiple of the number of replicas, no replicas.
 */
DIST_API DIST_NODISCARD dist_status dist_input_context_per_replica_batch_size(
    const dist_input_context *context, int64_t global_batch_size, int64_t *out_size);

/**
 * Makes the dataset of one input pipeline and hands it over. Its batches are given to replicas whole, so that
 * global_batch_size is there what one replica gets; its own prefetch is not used. *context is there during the call.
 */
typedef dist_status (*dist_dataset_fn)(const dist_input_context *context, dist_dataset **out_dataset,
                                       void *user_data);

/**
 * A dataset of what a function makes (TensorFlow: distribute_datasets_from_function). The function is called once, here,
 * and its batches are dealt out: replica r of step k gets batch k*R + r. A last step for which batches are missing has
 * empty tensors in their place; where all batches have the same shape (options.static_shapes of the function's dataset)
 * an empty one would be a different shape, and the step is left out, its data too.
 *
 * With options.replication_mode DIST_INPUT_PER_REPLICA the function is called R times, with input_pipeline_id r of R, and
 * replica r of step k gets batch k of dataset r.
 *
 * Of a strategy of several workers each calls its own function, for its input pipeline of as many as there are workers; what
 * that makes is its own, and its num_workers is 0 or what the program divides by itself. A last step is then always given.
 *
 * Only prefetch and the three options about replication and devices are read, all others must be 0.
 *
 * Shape    The batches of a step have one structure.
 * Order    The function's datasets'.
 * Context  Strategy, concurrent.
 * Blocks   While fn runs.
 * Owns     Takes the function's datasets. *out_dataset is the caller's: dist_dataset_destroy().
 * Errors   INVALID_ARGUMENT     NULL; fn made no dataset; options that do not go together.
 *          UNIMPLEMENTED        DIST_INPUT_PER_REPLICA on another than a mirrored strategy.
 *          FAILED_PRECONDITION  inside a replica function; a forked child.
 *          RESOURCE_EXHAUSTED   no memory.
 *          any                  what fn returned, in its own words where it had some (dist_fail()).
 */
DIST_API DIST_NODISCARD dist_status dist_dataset_create_from_function(dist_strategy *strategy,
                                                                      dist_dataset_fn fn, void *user_data,
                                                                      const dist_dataset_options *options,
                                                                      dist_dataset **out_dataset);

/**
 * Ends a dataset; its iterators go on. NULL is fine.
 *
 * Context  Any, serialized.
 * Owns     Takes the dataset.
 */
DIST_API void dist_dataset_destroy(dist_dataset *dataset);

/**
 * Begins a pass: the first of this dataset is pass 0, the next one pass 1, ... Iterators are independent.
 *
 * Context  Strategy, concurrent.
 * Owns     *out_iterator is the caller's: dist_iterator_destroy().
 * Errors   INVALID_ARGUMENT     NULL, a handle of something else; global_batch_size is 0 and a row has no dimension that
 *                               could be cut, or rows of different lengths.
 *          FAILED_PRECONDITION  a forked child; inside a replica function, where the dataset is for several.
 *          RESOURCE_EXHAUSTED   no memory.
 */
DIST_API DIST_NODISCARD dist_status dist_iterator_create(dist_dataset *dataset, dist_iterator **out_iterator);

/** Where a pass is: plain numbers, to be kept wherever the program likes. */
typedef struct dist_position {
  uint32_t struct_size;
  int32_t reserved;
  int64_t pass;     /* its number: shuffled orders depend on it */
  int64_t elements; /* of the source, that are used up */
  int64_t examples; /* of the element after them, where one is cut into several batches */
  int64_t batches;  /* made of them */
} dist_position;
#define DIST_POSITION_INIT \
  { sizeof(dist_position), 0, 0, 0, 0, 0 }

/**
 * Where the next batch of a pass begins. Batches that are made ahead do not count.
 *
 * Context  Strategy, serialized.
 * Owns     Nothing. out_position->struct_size says how much of it to write.
 * Errors   INVALID_ARGUMENT NULL, a struct_size that is none. FAILED_PRECONDITION a forked child.
 */
DIST_API DIST_NODISCARD dist_status dist_iterator_position(dist_iterator *iterator,
                                                           dist_position *out_position);

/**
 * Begins a pass in its middle: what follows is what would have followed there, also with another number of replicas or
 * another batch size. The dataset must have the same source and seed; where workers read different elements, the same
 * workers. Passes that dist_iterator_create() begins later are numbered on from there.
 *
 * Context  Strategy, concurrent.
 * Blocks   While files are read up to the position; a source of one callback is asked for that element at once.
 * Owns     *out_iterator is the caller's: dist_iterator_destroy().
 * Errors   As dist_iterator_create(); INVALID_ARGUMENT also for a position that the dataset has not, and for a number of it
 *          that is below 0 or above 2^62.
 */
DIST_API DIST_NODISCARD dist_status dist_iterator_create_at(dist_dataset *dataset,
                                                            const dist_position *position,
                                                            dist_iterator **out_iterator);

/**
 * The next batch: the element's structure with a per-replica value at each leaf (one replica: a tensor). With
 * several tensors in memory it is a list of them, with one that one.
 *
 * Of a strategy of several workers it is a call of all of them: as long as one has a batch, those that are out of data get
 * one without examples; where its parts have no examples (scalars), that step is left out on all. A step that fails is
 * still there for the next call.
 *
 * Shape    [elements of that replica, ...]; 0 elements where a batch was smaller than R.
 * Context  Strategy, serialized.
 * Blocks   Until the batch is made; in a merge function until what ends the run, unless it is made on this very thread. Of
 *          several workers until all have come, at most for the strategy's timeout.
 * Owns     *out_batch is the caller's: dist_value_release().
 * Errors   OUT_OF_RANGE      the pass is over; again on every further call.
 *          INVALID_ARGUMENT  NULL; elements of a batch differ; an element is a scalar that cannot be split.
 *          FAILED_PRECONDITION  a forked child; inside a replica function, where the dataset is for several, or of several
 *                            workers; a worker's source had no element to show what an empty batch is like.
 *          any               what the source returned; of several workers, what another one's did.
 */
DIST_API DIST_NODISCARD dist_status dist_iterator_next(dist_iterator *iterator, dist_value **out_batch);

/**
 * Ends a pass. NULL is fine.
 *
 * Context  Any, serialized.
 * Blocks   Until a batch that is being made ahead is done.
 * Owns     Takes the iterator.
 */
DIST_API void dist_iterator_destroy(dist_iterator *iterator);

#ifdef __cplusplus
}
#endif
#endif /* DIST_DATASET_H */

/* ---- Experimental: what follows may change or go in any version, as types.h says ------------------- */

#if defined(DIST_EXPERIMENTAL) && !defined(DIST_DATASET_EXPERIMENTAL_H)
#define DIST_DATASET_EXPERIMENTAL_H

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Makes element `index` (0, 1, 2, ... each time that the file is read) of the file with number `file` in the list, whose
 * name is `name`. DIST_OUT_OF_RANGE ends the file. Otherwise as dist_source_fn: the host opens and reads files.
 */
typedef dist_status (*dist_file_source_fn)(size_t file, const char *name, int64_t index,
                                           dist_value **out_element, void *user_data);

/**
 * A dataset of the elements of n files. Several workers get whole files, file i worker i mod W (DIST_SHARD_FILE, and what
 * DIST_SHARD_AUTO means for files). options.interleave = c reads c files in turn, an element each, as TensorFlow's
 * interleave(cycle_length=c).
 *
 * Shape    As dist_dataset_create_from_callback().
 * Order    The files' in the list, and within a file the host's.
 * Context  Strategy, concurrent.
 * Owns     The names are copied; fn, user_data and release as in dist_dataset_create_from_callback().
 * Errors   As dist_dataset_create_from_callback(); INVALID_ARGUMENT also where there are fewer files than workers.
 */
DIST_API DIST_NODISCARD dist_status dist_dataset_create_from_files(
    dist_strategy *strategy, const char *const *names, size_t n, dist_file_source_fn fn, void *user_data,
    dist_release_fn release, const dist_dataset_options *options, dist_dataset **out_dataset);

/**
 * The sizes of the pieces that one of W workers with R replicas each cuts its batches to.
 *
 *     N = W*R, q = floor(global_batch_size / N), i = 0 .. N-1:
 *     out_sizes[i] = q + 1 where (i + worker*R) mod N < global_batch_size mod N, else q
 *
 * Step k of all workers together has global_batch_size examples, and after W steps every worker has had as many.
 *
 * Errors   INVALID_ARGUMENT  NULL, a number < 0 (workers, replicas: < 1), a worker that is none of them, n is not W*R.
 */
DIST_API DIST_NODISCARD dist_status dist_batch_sizes_for_worker(int64_t global_batch_size,
                                                                int32_t num_workers,
                                                                int32_t num_replicas_per_worker,
                                                                int32_t worker, int64_t *out_sizes, size_t n);

/**
 * What batches are like: their structure, with a text "f32[?, 4]" for each tensor of each replica; "?" is a size that
 * may differ from batch to batch. A source of the host's is asked for its first element.
 *
 * Context  Strategy, concurrent.
 * Blocks   While the source makes an element.
 * Owns     *out_spec is the caller's: dist_value_release().
 * Errors   As dist_iterator_next(): OUT_OF_RANGE where a source of the host's has no element.
 */
DIST_API DIST_NODISCARD dist_status dist_dataset_element_spec(dist_dataset *dataset, dist_value **out_spec);

/**
 * Takes what was made of all batches so far (in the first call: the initial state) and the next batch, and hands over
 * what they are together, with its reference: maybe the state it was given, retained.
 */
typedef dist_status (*dist_dataset_reduce_fn)(dist_value *state, dist_value *batch, dist_value **out_state,
                                              void *user_data);

/**
 * Makes one value of a whole pass.
 *
 *     state = initial;   for each batch: state = fn(state, batch)
 *
 * Context  Strategy, concurrent.
 * Blocks   Until the pass is over.
 * Owns     *out_state is the caller's: dist_value_release(). initial may be NULL, and then *out_state too.
 * Errors   INVALID_ARGUMENT NULL. any: as dist_iterator_create(), dist_iterator_next() (but for OUT_OF_RANGE) or fn.
 */
DIST_API DIST_NODISCARD dist_status dist_dataset_reduce(dist_dataset *dataset, dist_value *initial,
                                                        dist_dataset_reduce_fn fn, void *user_data,
                                                        dist_value **out_state);

/**
 * Reads what each of the dataset's workers would read in one pass, and checks that every example of the source comes
 * exactly once. Of a source of the host's all elements are made, but not more than `limit` (0: no limit).
 *
 * Context  Strategy, concurrent.
 * Blocks   Until the source is read num_workers times.
 * Errors   DATA_LOSS      an example that no worker gets, or several: dist_last_error() names the first, and whose.
 *          UNIMPLEMENTED  the dataset is of a function, which alone knows what it would make for other workers.
 *          any            as dist_iterator_next().
 */
DIST_API DIST_NODISCARD dist_status dist_dataset_check_shards(dist_dataset *dataset, int64_t limit);

/**
 * dist_iterator_next() whose end is no error (TensorFlow: get_next_as_optional): at the end *out_batch becomes NULL.
 *
 * Shape    As dist_iterator_next().
 * Context  Strategy, serialized.
 * Blocks   Until the batch is made.
 * Owns     *out_batch is the caller's: dist_value_release().
 * Errors   As dist_iterator_next(), but for OUT_OF_RANGE.
 */
DIST_API DIST_NODISCARD dist_status dist_iterator_next_optional(dist_iterator *iterator,
                                                                dist_value **out_batch);

#ifdef __cplusplus
}
#endif
#endif /* DIST_DATASET_EXPERIMENTAL_H */
