/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * Datasets: input whose batches are split over the replicas.
 *
 *     dist_tensor rows[] = {features, labels};              // equal first dimensions
 *     dist_dataset_options options = DIST_DATASET_OPTIONS_INIT;
 *     options.global_batch_size = 64;
 *     options.shuffle = 1;
 *     dist_dataset *dataset = NULL;
 *     dist_dataset_create_from_tensors(strategy, rows, 2, &options, &dataset);
 *
 *     dist_iterator *pass = NULL;
 *     dist_value *batch = NULL;
 *     dist_iterator_create(dataset, &pass);
 *     while ((status = dist_iterator_next(pass, &batch)) == DIST_OK && batch != NULL) {
 *       dist_run_values(strategy, step, model, batch, NULL, NULL, NULL);    // each replica gets its part of the batch
 *       dist_value_release(batch);
 *     }
 *     if (status != DIST_OK) handle_error(status);
 *     dist_iterator_destroy(pass);
 *
 * A source provides elements, batches are made of elements, and each batch is split over the replicas of all workers.
 * The elements come from tensors in memory or from your callback, which also takes the place of TensorFlow's dataset
 * transformations (map, filter, zip, repeat, ...).
 */
#ifndef DIST_DATASET_H
#define DIST_DATASET_H

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Options of a dataset. W is the number of workers and R the number of replicas of each worker. */
typedef struct dist_dataset_options {
  uint32_t struct_size;
  int32_t drop_remainder; /* 1 = omit a last batch that is not full */
  /* number of elements per batch for all replicas together; 0 = the source's elements already are global batches,
   * which are split as they are */
  int64_t global_batch_size;
  /* 1 = a different order in every pass, drawn from `seed` and the pass number */
  int32_t shuffle;
  /* number of batches that oneTBB threads make ahead; < 0 = none; 0 = one if that makes your loop faster, which
   * libdist measures (see dist_dataset_explain()), and none if the strategy starts no threads
   * (dist_host_options.helper_threads). TensorFlow: experimental_per_replica_buffer_size, in which 0 is none */
  int32_t prefetch;
  uint64_t seed;                  /* seed of the shuffled orders */
  dist_shard_policy shard_policy; /* how the source is divided between workers; 0 = DIST_SHARD_AUTO */
  /* number of workers that read this dataset together, at most 65,536, each with as many replicas as this one; 0 =
   * the strategy's workers and their replicas (1 worker except with DIST_STRATEGY_MULTI_WORKER_MIRRORED), and then
   * worker_index must be 0 */
  int32_t num_workers;
  int32_t worker_index; /* index of this worker, 0 .. num_workers-1 */
  /* 1 = global_batch_size counts the elements of one worker, and DIST_SHARD_DATA distributes whole batches; 0 =
   * every batch is split over all workers */
  int32_t worker_batches;
  /* 1 = the source must be sharded by element before batching; requires DIST_SHARD_HINT and fails with any other
   * policy */
  int32_t shard_hint;
  /* number of files that are read in turn, one element each; 0 or 1 = one file after another */
  int32_t interleave;
  /* 1 = every batch has the same shape; -1 = the last ones may be smaller; 0 = follows from drop_remainder, or is
   * 1 for rows of tensors that are batches */
  int32_t static_shapes;
  /* one dataset per worker or per replica; 0 = DIST_INPUT_PER_WORKER; PER_REPLICA is possible only for datasets from a
   * function, on mirrored strategies */
  dist_input_mode replication_mode;
  /* sizes in examples of consecutive pieces, repeated cyclically: the source's examples are split into these
   * pieces whatever batches they came in, and replica r gets piece k*R + r in step k; NULL = batches are split
   * evenly. Copied */
  const int64_t *batch_sizes;
  size_t num_batch_sizes; /* length of batch_sizes */
  /* 1 = every replica gets what it would get in one process with all replicas, so that W workers of R replicas
   * compute the same bits as one process with W*R replicas: with q = ceil(m / (W*R)), replica n of all workers
   * gets piece n. Every worker then reads the whole source. Requires DIST_SHARD_AUTO or DIST_SHARD_DATA.
   * TensorFlow has no such option; its workers take turns at the pieces */
  int32_t as_one_process;
  int32_t reserved; /* must be 0 */
} dist_dataset_options;
#define DIST_DATASET_OPTIONS_INIT                                                                          \
  {                                                                                                        \
    sizeof(dist_dataset_options), 0, 0, 0, 0, 0, DIST_SHARD_AUTO, 0, 0, 0, 0, 0, 0, DIST_INPUT_PER_WORKER, \
        NULL, 0, 0, 0                                                                                      \
  }

/** Initializes a dist_dataset_options to its defaults, like dist_strategy_options_init(). */
DIST_API void dist_dataset_options_init(dist_dataset_options *options, uint32_t struct_size_bytes);

/**
 * Creates a dataset of rows: element i is row i of each of n tensors (features, labels, ...).
 *
 *     a batch of m elements, q = ceil(m / R):   replica r gets elements [r*q, min(m, (r+1)*q)) of it, possibly none
 *
 * A partial last batch is split by its own size: 10 elements in batches of 8 on 2 replicas give 4 and 4, then 1 and 1.
 *
 * With W > 1 workers (options.num_workers) and DIST_SHARD_DATA, q is ceil(m / (W*R)), and replica r of worker w gets
 * piece r*W + w. If the workers read different elements, or every worker reads everything, batches are split into
 * pieces of the sizes that dist_batch_sizes_for_worker() returns. If the workers have different numbers of replicas,
 * the pieces go to the first replica of each worker, then to the second replica of each worker that has one, and so on.
 * With one replica and one worker nothing is split; an element that is a batch can then be anything, even a scalar.
 *
 * Shape    n >= 1 tensors with equal first dimensions (the number of elements).
 * Order    Without shuffle, the order of the tensors; with shuffle, a permutation that depends only on seed and pass
 *          number.
 * Context  Strategy, concurrent.
 * Owns     The data are copied. The caller owns *out_dataset and destroys it with dist_dataset_destroy().
 * Errors   INVALID_ARGUMENT     an argument is NULL, n is 0, a tensor is a scalar, the first dimensions differ, a batch
 *                               size is negative, or the worker index is not in 0 .. num_workers-1 (except with
 *                               DIST_SHARD_OFF).
 *          NOT_FOUND            DIST_SHARD_FILE with several workers: the source has no files.
 *          UNIMPLEMENTED        replication_mode is DIST_INPUT_PER_REPLICA.
 *          FAILED_PRECONDITION  called inside a replica function or in a forked child; shard_hint without
 *                               DIST_SHARD_HINT.
 *          RESOURCE_EXHAUSTED   out of memory.
 */
DIST_API DIST_NODISCARD dist_status dist_dataset_create_from_tensors(dist_strategy *strategy,
                                                                     const dist_tensor *tensors, size_t n,
                                                                     const dist_dataset_options *options,
                                                                     dist_dataset **out_dataset);

/**
 * Produces element `index` of a pass (0, 1, 2, ...; a pass that starts at a position begins with its index).
 *
 * *out_element is a tensor, or a list, tuple or dictionary of elements; libdist takes over its reference. Return
 * DIST_OUT_OF_RANGE to end the pass. libdist calls the function from one thread at a time, which may differ from the
 * thread that requests a batch. The function must not throw. Inside it, runs, collectives, accesses to variables and
 * requests for a batch fail with FAILED_PRECONDITION. `strategy` is the one that the dataset was created with; use it
 * only while it exists.
 */
typedef dist_status (*dist_source_fn)(dist_strategy *strategy, int64_t index, dist_value **out_element,
                                      void *user_data);

/**
 * Creates a dataset whose elements your callback produces.
 *
 * With a global batch size, that many elements of equal structure, dtypes and shapes are stacked along a new first
 * dimension. Otherwise each element is a batch. Texts and host objects stack to lists; DIST_VALUE_NONE stays
 * DIST_VALUE_NONE. Ragged and sparse tensors are split by rows.
 *
 * Shape    Like dist_dataset_create_from_tensors(). `shuffle` must be 0, since the source determines its own order.
 * Order    The source's.
 * Context  Strategy, concurrent.
 * Owns     fn and user_data are used until the dataset and its iterators have been destroyed; then libdist calls
 *          release(user_data), unless release is NULL. The caller owns *out_dataset and destroys it with
 *          dist_dataset_destroy().
 * Errors   Like dist_dataset_create_from_tensors(); also INVALID_ARGUMENT if shuffle is set.
 */
DIST_API DIST_NODISCARD dist_status dist_dataset_create_from_callback(dist_strategy *strategy,
                                                                      dist_source_fn fn, void *user_data,
                                                                      dist_release_fn release,
                                                                      const dist_dataset_options *options,
                                                                      dist_dataset **out_dataset);

/** The part of the input for which a function makes a dataset (TensorFlow: tf.distribute.InputContext). */
typedef struct dist_input_context {
  int32_t num_input_pipelines;  /* one per worker or one per replica */
  int32_t input_pipeline_id;    /* index of this pipeline, from 0 */
  int32_t num_replicas_in_sync; /* number of replicas of all workers */
} dist_input_context;
#define DIST_INPUT_CONTEXT_INIT \
  { 1, 0, 1 }

/**
 * Returns one replica's share of a global batch.
 *
 *     *out_size = global_batch_size / context->num_replicas_in_sync
 *
 * Errors   INVALID_ARGUMENT  an argument is NULL, the size is not a multiple of the number of replicas, or there are no
 *                            replicas.
 */
DIST_API DIST_NODISCARD dist_status dist_input_context_per_replica_batch_size(
    const dist_input_context *context, int64_t global_batch_size, int64_t *out_size);

/**
 * Creates the dataset of one input pipeline; libdist takes ownership of *out_dataset.
 *
 * Each batch of this dataset goes to one replica as a whole, so its global_batch_size is the batch size of one replica.
 * Its own prefetch is ignored. *context is valid only during the call.
 */
typedef dist_status (*dist_dataset_fn)(dist_strategy *strategy, const dist_input_context *context,
                                       dist_dataset **out_dataset, void *user_data);

/**
 * Creates a dataset from the datasets that a function returns (TensorFlow: distribute_datasets_from_function).
 *
 * The function is called once, during this call, and its batches are distributed: replica r gets batch k*R + r in step
 * k. If batches are missing in the last step, replicas get empty tensors instead. If all batches have the same shape
 * (options.static_shapes of the function's dataset), an empty tensor would have a different shape; dist_iterator_next()
 * then omits the last step and its data, while dist_iterator_next_optional() and dist_dataset_reduce() deliver it. A
 * scalar has no empty form, so that a dataset of scalars always loses such a step.
 *
 * With DIST_INPUT_PER_REPLICA as options.replication_mode, the function is called R times, with input_pipeline_id r of
 * R, and replica r gets batch k of dataset r in step k.
 *
 * With several workers, each worker calls its own function for its own input pipeline; there are as many pipelines as
 * workers. The worker reads the whole dataset that the function returns, whose num_workers is 0 unless the program
 * divides the input itself. The last step is then always delivered.
 *
 * Of `options`, only prefetch and replication_mode may be set. How the input is batched and sharded is set in the
 * function.
 *
 * Shape    All batches of a step have the same structure.
 * Order    Each dataset that the function returns determines the order of its own elements.
 * Context  Strategy, concurrent.
 * Blocks   While fn runs.
 * Owns     Takes ownership of the function's datasets. The caller owns *out_dataset and destroys it with
 *          dist_dataset_destroy().
 * Errors   INVALID_ARGUMENT     an argument is NULL; another option is set; fn created no dataset, or one that was
 *                               itself created from a function.
 *          UNIMPLEMENTED        DIST_INPUT_PER_REPLICA with a strategy that is not mirrored.
 *          FAILED_PRECONDITION  called inside a replica function or in a forked child.
 *          RESOURCE_EXHAUSTED   out of memory.
 *          any                  the status that fn returned, with its message if it set one (dist_fail()).
 */
DIST_API DIST_NODISCARD dist_status dist_dataset_create_from_function(dist_strategy *strategy,
                                                                      dist_dataset_fn fn, void *user_data,
                                                                      const dist_dataset_options *options,
                                                                      dist_dataset **out_dataset);

/**
 * Destroys a dataset. Its iterators stay valid. Does nothing if `dataset` is NULL.
 *
 * Context  Any, serialized.
 * Owns     Takes ownership of the dataset.
 */
DIST_API void dist_dataset_destroy(dist_dataset *dataset);

/**
 * Starts a pass over a dataset. The first pass of a dataset has number 0, the next one 1, and so on. Iterators are
 * independent of each other.
 *
 * Context  Strategy, concurrent.
 * Owns     The caller owns *out_iterator and destroys it with dist_iterator_destroy().
 * Errors   INVALID_ARGUMENT     an argument is NULL or not a dataset; global_batch_size is 0, and a row has no
 *                               dimension that can be split, or rows differ in length.
 *          FAILED_PRECONDITION  called in a forked child; called inside a replica function although the dataset serves
 *                               several replicas.
 *          RESOURCE_EXHAUSTED   out of memory.
 */
DIST_API DIST_NODISCARD dist_status dist_iterator_create(dist_dataset *dataset, dist_iterator **out_iterator);

/** The position of a pass: plain numbers, which the program can store anywhere. */
typedef struct dist_position {
  uint32_t struct_size;
  int32_t reserved; /* must be 0 */
  int64_t pass;     /* number of the pass; shuffled orders depend on it */
  int64_t elements; /* elements of the source that have been used up */
  int64_t examples; /* examples used of the next element, if one element is split into several batches */
  int64_t batches;  /* batches made so far */
} dist_position;
#define DIST_POSITION_INIT \
  { sizeof(dist_position), 0, 0, 0, 0, 0 }

/**
 * Returns the position at which the next batch of a pass begins. Batches that were made ahead do not count.
 *
 * Context  Strategy, serialized.
 * Owns     out_position->struct_size limits how many bytes are written.
 * Errors   INVALID_ARGUMENT     an argument is NULL or struct_size is invalid.
 *          FAILED_PRECONDITION  called in a forked child.
 */
DIST_API DIST_NODISCARD dist_status dist_iterator_position(dist_iterator *iterator,
                                                           dist_position *out_position);

/**
 * Starts a pass at a position. The batches continue exactly as they would have from there, even with a different number
 * of replicas or another batch size.
 *
 * The dataset must have the same source and seed, and the same workers if they read different elements. Passes that
 * dist_iterator_create() starts later are numbered from there.
 *
 * Context  Strategy, concurrent.
 * Blocks   While files are read up to the position. A source of one callback is asked directly for the element.
 * Owns     The caller owns *out_iterator and destroys it with dist_iterator_destroy().
 * Errors   Like dist_iterator_create(); also INVALID_ARGUMENT for a position that the dataset does not have, and for a
 *          number in it that is below 0 or above 2^62.
 */
DIST_API DIST_NODISCARD dist_status dist_iterator_create_at(dist_dataset *dataset,
                                                            const dist_position *position,
                                                            dist_iterator **out_iterator);

/**
 * Returns the next batch: the structure of an element, with a per-replica value at each leaf (with one replica, a
 * tensor). At the end of the pass, *out_batch is NULL, also in every further call.
 *
 * A dataset of several tensors returns a list of them; a dataset of one tensor returns that tensor.
 *
 * With several workers, all workers must make this call together. As long as one of them has a batch, workers without
 * data get a batch without examples. If a part of the batch has no examples (a scalar), that step is omitted on all
 * workers. A step that fails can be requested again.
 *
 * Shape    [elements of that replica, ...]; 0 elements if the batch was smaller than R.
 * Context  Strategy, serialized.
 * Blocks   Until the batch is made. In a merge function, the end of the run also ends the wait, unless the batch is
 *          made on the calling thread. With several workers, until all have arrived, at most for the strategy's
 *          timeout.
 * Owns     The caller owns *out_batch, unless it is NULL, and releases it with dist_value_release().
 * Errors   INVALID_ARGUMENT     an argument is NULL, the elements of a batch differ, or an element is a scalar and
 *                               cannot be split.
 *          FAILED_PRECONDITION  called in a forked child; called inside a replica function although the dataset serves
 *                               several replicas or several workers; a worker needs an empty batch, but its source has
 *                               no element to model it on.
 *          any                  the status that the source returned; with several workers, that of another worker's
 *                               source.
 */
DIST_API DIST_NODISCARD dist_status dist_iterator_next(dist_iterator *iterator, dist_value **out_batch);

/**
 * Ends a pass. Does nothing if `iterator` is NULL.
 *
 * Context  Any, serialized.
 * Blocks   Until a batch that is being made ahead is complete.
 * Owns     Takes ownership of the iterator.
 */
DIST_API void dist_iterator_destroy(dist_iterator *iterator);

/**
 * Produces element `index` (0, 1, 2, ..., from 0 each time the file is read) of file number `file` in the list, whose
 * name is `name`. Return DIST_OUT_OF_RANGE to end the file. Otherwise like dist_source_fn; your callback opens and
 * reads the files.
 */
typedef dist_status (*dist_file_source_fn)(dist_strategy *strategy, size_t file, const char *name,
                                           int64_t index, dist_value **out_element, void *user_data);

/**
 * Creates a dataset of the elements of n files.
 *
 * With several workers, file i goes to worker i mod W as a whole (DIST_SHARD_FILE, which DIST_SHARD_AUTO selects for
 * files). options.interleave = c reads c files in turn, one element each, like TensorFlow's interleave(cycle_length=c).
 *
 * Shape    Like dist_dataset_create_from_callback().
 * Order    That of the files in the list and, within a file, of the callback.
 * Context  Strategy, concurrent.
 * Owns     The names are copied; fn, user_data and release are used like in dist_dataset_create_from_callback().
 * Errors   Like dist_dataset_create_from_callback(); also INVALID_ARGUMENT if n is 0, a name is NULL, or there are
 *          fewer files than workers.
 */
DIST_API DIST_NODISCARD dist_status dist_dataset_create_from_files(
    dist_strategy *strategy, const char *const *names, size_t n, dist_file_source_fn fn, void *user_data,
    dist_release_fn release, const dist_dataset_options *options, dist_dataset **out_dataset);

/**
 * Computes the sizes of the pieces into which one of W workers with R replicas each splits its batches.
 *
 *     N = W*R, q = floor(global_batch_size / N), i = 0 .. N-1:
 *     out_sizes[i] = (i + worker*R) mod N < global_batch_size mod N  ?  q + 1  :  q
 *
 * Step k of all workers together has global_batch_size examples, and after W steps every worker has processed the same
 * number of examples.
 *
 * Errors   INVALID_ARGUMENT  out_sizes is NULL, a number is negative (workers and replicas: below 1), the worker is not
 *                            in 0 .. W-1, or n is not W*R.
 */
DIST_API DIST_NODISCARD dist_status dist_batch_sizes_for_worker(int64_t global_batch_size,
                                                                int32_t num_workers,
                                                                int32_t num_replicas_per_worker,
                                                                int32_t worker, int64_t *out_sizes, size_t n);

/**
 * Describes the batches: their structure, with a text such as "f32[?, 4]" for each tensor of each replica; "?" is a
 * size that can differ between batches. The first element of a callback source is read for this.
 *
 * Context  Strategy, concurrent.
 * Blocks   While the source makes an element.
 * Owns     The caller owns *out_spec and releases it with dist_value_release().
 * Errors   Like dist_iterator_next(); OUT_OF_RANGE if a callback source has no element.
 */
DIST_API DIST_NODISCARD dist_status dist_dataset_element_spec(dist_dataset *dataset, dist_value **out_spec);

/**
 * Combines a state with the next batch.
 *
 * `state` is the result for all previous batches; in the first call it is the initial state. Both `state` and `batch`
 * are borrowed. libdist takes over the reference of *out_state, which may be `state` itself, retained. Called on the
 * thread that called dist_dataset_reduce(), in its context. It may call any function, for example start a run, or start
 * another pass over `dataset`, but it must not destroy `dataset`.
 */
typedef dist_status (*dist_dataset_reduce_fn)(dist_dataset *dataset, dist_value *state, dist_value *batch,
                                              dist_value **out_state, void *user_data);

/**
 * Reduces a whole pass to one value.
 *
 *     state = initial;   for each batch: state = fn(dataset, state, batch)
 *
 * The batches are those of dist_iterator_next_optional().
 *
 * Context  Strategy, concurrent.
 * Blocks   Until the pass has ended.
 * Owns     The caller owns *out_state and releases it with dist_value_release(). `initial` may be NULL; *out_state can
 *          then be NULL, too.
 * Errors   INVALID_ARGUMENT  dataset, fn or out_state is NULL, or `dataset` is not a dataset.
 *          any               an error of dist_iterator_create() or dist_iterator_next(), or the status that fn
 *                            returned.
 */
DIST_API DIST_NODISCARD dist_status dist_dataset_reduce(dist_dataset *dataset, dist_value *initial,
                                                        dist_dataset_reduce_fn fn, void *user_data,
                                                        dist_value **out_state);

/**
 * Reads what each of the dataset's workers would read in one pass, and checks that every example of the source occurs
 * exactly once. For a callback source, all elements are made, but at most `limit` (0 = no limit).
 *
 * Context  Strategy, concurrent.
 * Blocks   Until the source has been read num_workers times.
 * Errors   INVALID_ARGUMENT  dataset is NULL or not a dataset, or limit is negative.
 *          DATA_LOSS         a worker misses an example, or an example occurs several times; dist_last_error() names
 *                            the first such example and its workers.
 *          UNIMPLEMENTED     the dataset is made by a function, which only the worker itself can call.
 *          any               like dist_iterator_next().
 */
DIST_API DIST_NODISCARD dist_status dist_dataset_check_shards(dist_dataset *dataset, int64_t limit);

/**
 * Returns the next batch like dist_iterator_next(), including a last step that lacks batches (TensorFlow:
 * get_next_as_optional).
 *
 * Only a dataset that was created from a function and whose batches all have the same shape has such a step. This
 * function delivers it, with empty tensors for some replicas; dist_iterator_next() omits it.
 *
 * Shape    Like dist_iterator_next().
 * Context  Strategy, serialized.
 * Blocks   Until the batch is made.
 * Owns     The caller owns *out_batch, unless it is NULL, and releases it with dist_value_release().
 * Errors   Like dist_iterator_next().
 */
DIST_API DIST_NODISCARD dist_status dist_iterator_next_optional(dist_iterator *iterator,
                                                                dist_value **out_batch);

#ifdef __cplusplus
}
#endif
#endif /* DIST_DATASET_H */
