/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * Collectives: operations that all replicas of a run perform together.
 *
 *     static dist_status step(dist_replica *replica, void *user_data) {
 *       dist_collective_options options = DIST_COLLECTIVE_OPTIONS_INIT;
 *       options.tag = "gradients";                   // appears in error reports
 *       return dist_all_reduce(replica, DIST_REDUCE_MEAN, gradients, gradients, 2, &options, NULL);
 *     }
 *
 * All replicas of a run must call the same collectives in the same order. On arrival, each replica states what it wants
 * to do. If the others requested something different, left the function, failed, or do not arrive in time, the
 * collective fails on every member at once, and all members get the same report. Later collectives of that group fail
 * with the same report until the run has ended. No member hangs.
 *
 * Collectives of tensors block if `out_work` is NULL. Otherwise they are asynchronous: the call returns at once and
 * stores a handle in *out_work, with which dist_work_wait() waits for the result; work.h says more. All members pass
 * out_work to a collective, or none does.
 *
 * When a collective has returned, for whatever reason, no peer accesses its buffers any longer. After an error, the
 * contents of its outputs are unspecified.
 */
#ifndef DIST_COLLECTIVE_H
#define DIST_COLLECTIVE_H

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Options of a collective. NULL selects the default for each field. Fields that a collective does not use must have
 * their defaults: axis if it neither splits nor joins tensors, splits unless it is dist_all_to_all(), contributions and
 * weights if it does not reduce, reduce_fn and reduce_element_bytes unless `op` is DIST_REDUCE_USER. numerics and
 * bytes_per_pack have no effect where they do not apply.
 */
typedef struct dist_collective_options {
  uint32_t struct_size;
  dist_numerics numerics; /* order of additions in a sum; 0 = DIST_NUMERICS_DEFAULT (the strategy's) */
  const char *tag;        /* name for reports, equal on all members; may be NULL */
  int64_t timeout_ns;     /* longest wait for a peer in ns; 0 = the strategy's; DIST_NO_TIMEOUT = no limit */
  /* participating group; NULL = all replicas. Below, R is its size, and r, p and root are ranks in it */
  const dist_group *group;
  const double *weights; /* MEAN: one weight (>= 0) per contribution; set on all members or on none */
  /* number of tensors that this replica adds to each sum; 0 on all members = 1. A sum has at most 1,024
     contributions, or 16 for each replica if that is more */
  size_t contributions;
  dist_reduce_fn reduce_fn; /* operator of DIST_REDUCE_USER; the same on all members */
  void *reduce_user_data;   /* passed to reduce_fn */
  const int64_t *splits;    /* all_to_all: R sizes of the parts of `in` along the axis; NULL = equal */
  int32_t axis;             /* dimension along which parts are split or joined; < 0 counts from the end */
  int32_t planned;          /* 1 = *out_work is a plan; dist_work_start() starts it, any number of times */
  size_t bytes_per_pack;    /* approximate pack size of a planned list; 0 = the strategy's, or no packs */
  dist_cancel *cancel;      /* cancels the group's collectives in this run, on all members; may be NULL */
  /* DIST_REDUCE_USER: size of one element of reduce_fn, the same on all members; 0 = the dtype's size. At most
   * 4,096 and a multiple of the dtype's size of each tensor. Elements must be whole: a tensor's strides and its
   * split along the axis must not divide one. TREE with more than 3 contributions allows less, for example 3,072
   * with up to 7, 1,536 with up to 31 and 576 with 1,024; the error report states the limit */
  size_t reduce_element_bytes;
} dist_collective_options;
#define DIST_COLLECTIVE_OPTIONS_INIT \
  { sizeof(dist_collective_options), DIST_NUMERICS_DEFAULT, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/** Initializes a dist_collective_options to its defaults, like dist_strategy_options_init(). */
DIST_API void dist_collective_options_init(dist_collective_options *options, uint32_t struct_size_bytes);

/**
 * Reduces n tensors over all replicas. Every replica gets the results.
 *
 *     for t in 0 .. n-1, every element i, every replica r:
 *       acc = in[0][t][i];   for p in 1 .. R-1:   acc = op(acc, in[p][t][i]);   out[r][t][i] = acc
 *
 * If options->contributions is k, `in` holds k lists one after another, and contributions in[p][j*n + t] of replica p
 * are folded in the order of j. k may differ between replicas. With options->weights = w, MEAN is a weighted mean:
 *
 *     (sum over p, j of w[p][j] * in[p][j*n + t][i]) / (sum over p, j of w[p][j])
 *
 * A replica with an empty batch passes weight 0. If all weights are 0, the result is NaN.
 *
 * Shape    in[t] and out[t] have equal shapes and dtypes, and in[t] is the same on every replica. Strides are
 *          arbitrary; tensors without gaps are the fastest. n = 0 and tensors without elements are valid. The call is
 *          in place if out == in or if out[t] is the same view as in[t]. Any other overlap of in[t] and out[t] is an
 *          error, except for interleaved views (even and odd elements). Overlap between different tensors of one list
 *          is not checked. All replicas may pass the same out buffer; it is written once. If an output overlaps
 *          another replica's buffer in any other way, the call fails and the contents of both are undefined.
 * Order    ORDERED: elements are folded from left to right by replica id. The bits are the same on every replica, in
 *          every run and at every size. f16 and bf16 accumulate in f32 and are rounded once. MEAN divides the folded
 *          sum by the number of contributions before that rounding. MEAN of integers must be out of place, into f64
 *          (from i32, u32, i64, u64) or f32 (from smaller types). A weighted product is rounded to the accumulator's
 *          type. Integers wrap around. MIN and MAX return NaN if any element is NaN; min(-0, +0) is -0. A NaN result
 *          may be any NaN. COMPLEX64 supports SUM, MEAN and PROD; BOOL supports MIN (and) and MAX (or).
 *          REPRODUCIBLE: supports SUM and MEAN of f16, bf16, f32 and f64, and everything that is exact in any order
 *          (integers, MIN, MAX). Contributions are added exactly and rounded once, so SUM is the correctly rounded sum.
 *          MEAN rounds the sum to f64 (to odd; to nearest for f64) and divides in f64. A weighted product is rounded to
 *          f64 first.
 *          TREE: supports everything that ORDERED does, with the same rounding, but folds by a fixed binary tree over
 *          the contributions x[0] .. x[N-1] of all replicas in order (a replica with k contributions has k of them):
 *
 *              T(a, 1) = x[a];   T(a, n) = T(a, m) op T(a + m, n - m);   m is the largest power of two below n
 *              result = T(0, N), rounded once where ORDERED rounds, MEAN divided before;   N = 7: ((0 1)(2 3))((4 5)6)
 *
 *          A run of n consecutive contributions therefore folds into one subtotal if n is a power of two and the first
 *          position is a multiple of n, and into at most 2 * ceil(log2 n) subtotals otherwise. Subtotals have the
 *          accumulator's type (f32 for f16 and bf16). As with ORDERED, the bits depend only on the contributions and
 *          their order, not on how they are distributed over replicas and workers. With weights w, the result is T of
 *          w[a] * x[a] divided by T of w[a]. If the order does not matter (integers without weights, MIN, MAX), and for
 *          up to three contributions, the bits equal those of ORDERED. reduce_fn is called in the order of the tree.
 * Context  Replica. Collective.
 * Blocks   Until every member has arrived, the deadline expires, or a member fails; with out_work not at all, unless
 *          options->planned is 1 or async_bytes is used up (work.h).
 * Owns     The memory of `in` and `out` is borrowed until the call returns or, with out_work, until the work has
 *          completed. The caller owns *out_work and destroys it with dist_work_destroy(). options and out_work may be
 *          NULL.
 * Errors   INVALID_ARGUMENT     an argument is NULL; a dtype, op, shape, weight or overlap is invalid; an option is out
 *                               of range; this replica is not a member of options->group; or the replicas disagree.
 *          DEADLINE_EXCEEDED    not all members arrived in time; the report lists the missing ones.
 *          ABORTED              a replica failed or left; the report names it. Or members wait for each other in
 *                               different groups; the report shows the cycle.
 *          CANCELLED            a cancel object of any member's options or of the run was signalled, or
 *                               dist_strategy_cancel() or dist_strategy_shutdown() was called.
 *          FAILED_PRECONDITION  the replica's run has ended; the handle belongs to another thread; or the replica
 *                               handles a request (serve.h).
 *          UNIMPLEMENTED        REPRODUCIBLE with PROD, USER, weighted integers or complex64, or for a scan.
 *          UNAVAILABLE          with several workers: a worker is lost.
 *          RESOURCE_EXHAUSTED   out of memory.
 */
DIST_API DIST_NODISCARD dist_status dist_all_reduce(dist_replica *replica, dist_reduce_op op,
                                                    const dist_tensor *in, const dist_tensor *out, size_t n,
                                                    const dist_collective_options *options,
                                                    dist_work **out_work);

/**
 * Reduces n tensors over all replicas. Only the root gets the results.
 *
 *     out[root][t] = result of dist_all_reduce()
 *
 * Shape    Like dist_all_reduce(). `out` is written only on the root and may be NULL elsewhere.
 * Order    Like dist_all_reduce().
 * Context  Replica. Collective.
 * Blocks   Like dist_all_reduce().
 * Owns     Like dist_all_reduce().
 * Errors   Like dist_all_reduce(); also INVALID_ARGUMENT if root is not in 0 .. R-1 or differs between members.
 */
DIST_API DIST_NODISCARD dist_status dist_reduce_to_root(dist_replica *replica, dist_reduce_op op,
                                                        int32_t root, const dist_tensor *in,
                                                        const dist_tensor *out, size_t n,
                                                        const dist_collective_options *options,
                                                        dist_work **out_work);

/**
 * Reduces n tensors over all replicas. Every replica gets a part of each result.
 *
 *     whole = result of dist_all_reduce() for tensor t;   m[r] = out[r][t].shape[axis]
 *     out[r][t] = whole[m[0] + ... + m[r-1]  up to  m[0] + ... + m[r]] along the axis
 *
 * Shape    in[t] is like in dist_all_reduce(). out[r][t] has the same shape except along options->axis. Along the axis
 *          the members' sizes may differ and be 0; they must add up to the size of in[t]. Out of place only.
 * Order    Like dist_all_reduce().
 * Context  Replica. Collective.
 * Blocks   Like dist_all_reduce().
 * Owns     Like dist_all_reduce().
 * Errors   Like dist_all_reduce(); also INVALID_ARGUMENT if the sizes do not add up.
 */
DIST_API DIST_NODISCARD dist_status dist_reduce_scatter(dist_replica *replica, dist_reduce_op op,
                                                        const dist_tensor *in, const dist_tensor *out,
                                                        size_t n, const dist_collective_options *options,
                                                        dist_work **out_work);

/**
 * Concatenates the tensors of all replicas. Every replica gets the results.
 *
 *     for t in 0 .. n-1, every replica r:   out[r][t] = concatenation of in[0][t], ..., in[R-1][t] along the axis
 *
 * Shape    in[p][t] have equal dtypes, ndim >= 1, and equal shapes except along options->axis. Along the axis their
 *          sizes may differ and be 0; the size of out[t] is their sum. Out of place, but in[t] may be its own slice of
 *          out[t]. Strides are arbitrary.
 * Order    Bits are copied, in the order of ranks.
 * Context  Replica. Collective.
 * Blocks   Like dist_all_reduce().
 * Owns     Like dist_all_reduce().
 * Errors   Like dist_all_reduce(); also INVALID_ARGUMENT for a scalar or if the sizes do not add up.
 */
DIST_API DIST_NODISCARD dist_status dist_all_gather(dist_replica *replica, const dist_tensor *in,
                                                    const dist_tensor *out, size_t n,
                                                    const dist_collective_options *options,
                                                    dist_work **out_work);

/**
 * Concatenates the tensors of all replicas. Only the root gets the results.
 *
 *     out[root][t] = result of dist_all_gather()
 *
 * Shape    Like dist_all_gather(). `out` is written only on the root and may be NULL elsewhere.
 * Order    Like dist_all_gather().
 * Context  Replica. Collective.
 * Blocks   Like dist_all_reduce().
 * Owns     Like dist_all_reduce().
 * Errors   Like dist_all_gather(); also INVALID_ARGUMENT if root is not in 0 .. R-1 or differs between members.
 */
DIST_API DIST_NODISCARD dist_status dist_gather_to_root(dist_replica *replica, int32_t root,
                                                        const dist_tensor *in, const dist_tensor *out,
                                                        size_t n, const dist_collective_options *options,
                                                        dist_work **out_work);

/**
 * Copies the root's tensors to every replica.
 *
 *     for t in 0 .. n-1, every element i, every replica r:   out[r][t][i] = in[root][t][i]
 *
 * Shape    Like dist_all_reduce(). `in` is read only on the root and may be NULL elsewhere. The root may pass out ==
 *          in.
 * Order    Bits are copied.
 * Context  Replica. Collective.
 * Blocks   Like dist_all_reduce().
 * Owns     Like dist_all_reduce().
 * Errors   Like dist_all_reduce(); also INVALID_ARGUMENT if root is not in 0 .. R-1 or differs between members.
 */
DIST_API DIST_NODISCARD dist_status dist_broadcast(dist_replica *replica, int32_t root, const dist_tensor *in,
                                                   const dist_tensor *out, size_t n,
                                                   const dist_collective_options *options,
                                                   dist_work **out_work);

/**
 * Splits each of the root's tensors and gives every replica one part.
 *
 *     m[r] = out[r][t].shape[axis];   out[r][t] = in[root][t][m[0] + ... + m[r-1]  up to  m[0] + ... + m[r]]
 *
 * Shape    Like dist_reduce_scatter(). `in` is read only on the root and may be NULL elsewhere. Out of place, but the
 *          root's out[t] may be its own slice of in[t].
 * Order    Bits are copied.
 * Context  Replica. Collective.
 * Blocks   Like dist_all_reduce().
 * Owns     Like dist_all_reduce().
 * Errors   Like dist_reduce_scatter(); also INVALID_ARGUMENT if root is not in 0 .. R-1 or differs between members.
 */
DIST_API DIST_NODISCARD dist_status dist_scatter_from_root(dist_replica *replica, int32_t root,
                                                           const dist_tensor *in, const dist_tensor *out,
                                                           size_t n, const dist_collective_options *options,
                                                           dist_work **out_work);

/**
 * Every replica sends one part of each tensor to every replica.
 *
 *     in[p][t] is split along the axis into R parts of sizes options->splits[0 .. R-1], or into equal parts
 *     for t in 0 .. n-1, every replica r:   out[r][t] = concatenation of part r of in[0][t], ..., of in[R-1][t]
 *
 * Shape    in[p][t] have equal dtypes, ndim >= 1, and equal shapes except along options->axis. Without splits, the size
 *          along the axis must be a multiple of R; with splits, it must be their sum, for each of the n tensors. The
 *          size of out[r][t] is the sum of the parts that r receives. Out of place only.
 * Order    Bits are copied.
 * Context  Replica. Collective.
 * Blocks   Like dist_all_reduce().
 * Owns     Like dist_all_reduce().
 * Errors   Like dist_all_gather().
 */
DIST_API DIST_NODISCARD dist_status dist_all_to_all(dist_replica *replica, const dist_tensor *in,
                                                    const dist_tensor *out, size_t n,
                                                    const dist_collective_options *options,
                                                    dist_work **out_work);

/**
 * Reduces n tensors over the replicas up to each one (a prefix reduction).
 *
 *     INCLUSIVE:   out[r][t] = op(in[0][t], ..., in[r][t])
 *     EXCLUSIVE:   out[r][t] = op(in[0][t], ..., in[r-1][t]);   out[0][t] = the neutral element of op: 0 for SUM, 1 for
 *                  PROD, the largest value (inf, true) for MIN, the smallest for MAX; unchanged for USER
 *
 * `kind` is DIST_SCAN_INCLUSIVE or DIST_SCAN_EXCLUSIVE.
 *
 * Shape    Like dist_all_reduce(), but each replica must pass its own out.
 * Order    Like dist_all_reduce() with ORDERED or TREE: each result equals that of a reduction over these replicas
 *          only. MEAN is not supported.
 * Context  Replica. Collective.
 * Blocks   Like dist_all_reduce().
 * Owns     Like dist_all_reduce().
 * Errors   Like dist_all_reduce(); also INVALID_ARGUMENT for an unknown kind, and for MEAN.
 */
DIST_API DIST_NODISCARD dist_status dist_scan(dist_replica *replica, dist_reduce_op op, dist_scan_kind kind,
                                              const dist_tensor *in, const dist_tensor *out, size_t n,
                                              const dist_collective_options *options, dist_work **out_work);

/**
 * Every replica sends its tensors to one other replica.
 *
 *     for t in 0 .. n-1, every replica r:   out[r][t] = in[source[r]][t];   if source[r] is -1:   out[r][t] = 0
 *
 * `destination` is the rank that receives this replica's tensors, and `source` is the rank whose tensors this replica
 * receives; -1 means none. The pairs must match: destination[p] is r if and only if source[r] is p. A replica may send
 * to itself.
 *
 * Shape    in[t] and out[t] have equal shapes and dtypes, the same on every replica. Out of place only.
 * Order    Bits are copied.
 * Context  Replica. Collective.
 * Blocks   Like dist_all_reduce().
 * Owns     Like dist_all_reduce().
 * Errors   Like dist_all_reduce(); also INVALID_ARGUMENT if a rank is not in -1 .. R-1 or the pairs do not match.
 */
DIST_API DIST_NODISCARD dist_status dist_permute(dist_replica *replica, int32_t destination, int32_t source,
                                                 const dist_tensor *in, const dist_tensor *out, size_t n,
                                                 const dist_collective_options *options,
                                                 dist_work **out_work);

/**
 * Waits until every member has arrived. All writes that a member made before the barrier are visible to all members
 * after it.
 *
 * Context  Replica. Collective.
 * Blocks   Like dist_all_reduce().
 * Owns     Like dist_all_reduce().
 * Errors   Like dist_all_reduce().
 */
DIST_API DIST_NODISCARD dist_status dist_barrier(dist_replica *replica,
                                                 const dist_collective_options *options,
                                                 dist_work **out_work);

/**
 * Reduces every leaf of a nest, like dist_all_reduce(). The result has the structure of the value.
 *
 * Indexed slices are concatenated instead of added: the result has the rows and indices of all replicas, one after
 * another, and MEAN divides the rows by R. An index that occurs on several replicas occurs several times in the result.
 *
 * The one-device strategy and the default strategy have no peers: they return tensors unchanged, with any dtype.
 *
 * Shape    A tensor, or lists, tuples and dictionaries of tensors and indexed slices, with the same structure on all
 *          replicas. For a per-replica or mirrored value, or a variable, this replica's component is used.
 * Order    Like dist_all_reduce().
 * Context  Replica. Collective.
 * Blocks   Like dist_all_reduce().
 * Owns     `value` is borrowed. The caller owns *out_value and releases it with dist_value_release().
 * Errors   Like dist_all_reduce(), and
 *          INVALID_ARGUMENT    options->planned is 1, or options->contributions is above 1; a leaf is not a tensor.
 *          UNIMPLEMENTED       indexed slices with an operator other than SUM and MEAN, or with weights.
 *          RESOURCE_EXHAUSTED  out of memory.
 */
DIST_API DIST_NODISCARD dist_status dist_all_reduce_value(dist_replica *replica, dist_reduce_op op,
                                                          dist_value *value,
                                                          const dist_collective_options *options,
                                                          dist_value **out_value);

/**
 * Concatenates every leaf of a nest, like dist_all_gather(). The result has the structure of the value. The call takes
 * two rounds; the first one exchanges the sizes.
 *
 * Shape    Like dist_all_reduce_value(), with leaves as in dist_all_gather().
 * Order    Like dist_all_gather().
 * Context  Replica. Collective.
 * Blocks   Like dist_all_reduce().
 * Owns     `value` is borrowed. The caller owns *out_value and releases it with dist_value_release().
 * Errors   Like dist_all_reduce_value(); also UNIMPLEMENTED for indexed slices.
 */
DIST_API DIST_NODISCARD dist_status dist_all_gather_value(dist_replica *replica, dist_value *value,
                                                          const dist_collective_options *options,
                                                          dist_value **out_value);

/**
 * Creates a group of some replicas, for collectives among them; see dist_collective_options.group.
 *
 * Groups may overlap and communicate at the same time. If members wait for each other in different groups, they get an
 * error instead of a deadlock.
 *
 * With several workers, ids and ranks count the replicas of all workers. Every worker must create the same groups in
 * the same order, even if it has no member in them (workers.h). If the creation fails, a worker that learns of the
 * failure has no group, and the strategy is unchanged. A deadlock between members of different workers that wait in
 * different groups is not detected; their deadlines end it. Groups whose members all belong to one worker do not
 * communicate with other workers.
 *
 * Shape    1 <= n <= R ids in 0 .. R-1, in ascending order. The rank in the group is the position in this list, so sums
 *          keep the order of ids.
 * Context  Strategy, concurrent; not during a run. With several workers, the call waits for the run to end.
 * Blocks   With several workers, until all have created the group, at most for the strategy's timeout.
 * Owns     The caller owns *out_group and destroys it with dist_group_destroy() before dist_strategy_destroy().
 * Errors   INVALID_ARGUMENT     an argument is NULL, n is out of range, or an id is out of range or not above the
 *                               previous one; or the workers pass different ids (the report shows both lists, shortened
 *                               if they are long).
 *          FAILED_PRECONDITION  a run is in progress; a forked child.
 *          RESOURCE_EXHAUSTED   out of memory.
 *          DEADLINE_EXCEEDED    a worker did not create the group in time, or a run was in progress for too long.
 *          ABORTED              a worker failed or made a different call; the report names it.
 *          UNAVAILABLE          a worker is lost.
 *          CANCELLED            dist_strategy_cancel() or dist_strategy_shutdown() was called.
 */
DIST_API DIST_NODISCARD dist_status dist_group_create(dist_strategy *strategy, const int32_t *replica_ids,
                                                      size_t n, dist_group **out_group);

/**
 * Destroys a group. Does nothing if `group` is NULL. After dist_strategy_shutdown() this does nothing, and
 * dist_strategy_destroy() frees the group; do not call this after it.
 *
 * With several workers, this destroys only the local handle and does not wait. If other workers use the group later,
 * their collectives fail with a report that this worker has left, once its run has ended.
 *
 * Context  Strategy, concurrent; not during a run.
 * Owns     Takes ownership of the group, unless it fails.
 * Errors   FAILED_PRECONDITION  a run is in progress, or the group has unfinished work; the group is unchanged.
 */
DIST_API DIST_NODISCARD dist_status dist_group_destroy(dist_group *group);

/** Returns the number of replicas in the group, over all workers; 0 for NULL. */
DIST_API int32_t dist_group_size(const dist_group *group);

/** Returns the rank of a replica in the group; -1 if it is not a member, and for NULL. */
DIST_API int32_t dist_group_rank(const dist_group *group, int32_t replica_id);

/** How collectives of a program communicate (TensorFlow: CommunicationOptions, CollectiveHints). */
typedef struct dist_communication_options {
  uint32_t struct_size;
  int32_t reserved; /* must be 0 */
  /* planned lists, and lists reduced outside runs, are split into packs of about this size; 0 = not set */
  size_t bytes_per_pack;
  int64_t timeout_ns; /* longest wait for a peer; 0 = not set, DIST_NO_TIMEOUT = no limit */
} dist_communication_options;
#define DIST_COMMUNICATION_OPTIONS_INIT \
  { sizeof(dist_communication_options), 0, 0, 0 }

/** Initializes a dist_communication_options to its defaults, like dist_strategy_options_init(). */
DIST_API void dist_communication_options_init(dist_communication_options *options,
                                              uint32_t struct_size_bytes);

/**
 * Merges two sets of options; fields that are set in `over` override those of `base`.
 *
 *     each field:   *out_options = over, if over is not NULL and its field is not 0; otherwise base
 *
 * The options of a collective override those of its strategy by this rule. If `over` is NULL, the result is a checked
 * copy of `base`.
 *
 * Owns     The caller sets out_options->struct_size, which limits how many bytes are written. out_options may point to
 *          base or over.
 * Errors   INVALID_ARGUMENT  base or out_options is NULL; in one of the three, struct_size is not a valid size; or, in
 *                            base or over, reserved is not 0, bytes_per_pack is 2^63 or more, timeout_ns is below
 *                            DIST_NO_TIMEOUT, or a field that this version does not know is set.
 */
DIST_API DIST_NODISCARD dist_status dist_communication_options_merge(const dist_communication_options *base,
                                                                     const dist_communication_options *over,
                                                                     dist_communication_options *out_options);

/** Options of dist_reduce_apply(). */
typedef struct dist_apply_options {
  uint32_t struct_size;
  dist_apply_kind kind; /* 0 = DIST_APPLY_SGD */
  double learning_rate; /* SGD: step size */
  double momentum;      /* SGD: momentum; 0 = no momentum and no states */
  /* > 0 = gradients are scaled down if their global norm exceeds it; 0 = no clipping */
  double clip_norm;
  /* num_states lists of n tensors, shaped like the parameters; SGD with momentum needs one list */
  const dist_tensor *states;
  size_t num_states;
  dist_apply_fn fn; /* CALLBACK: the update function */
  void *user_data;  /* passed to fn */
} dist_apply_options;
#define DIST_APPLY_OPTIONS_INIT \
  { sizeof(dist_apply_options), DIST_APPLY_SGD, 0, 0, 0, 0, 0, 0, 0 }

/** Initializes a dist_apply_options to its defaults, like dist_strategy_options_init(). */
DIST_API void dist_apply_options_init(dist_apply_options *options, uint32_t struct_size_bytes);

/**
 * Reduces gradients and applies them to parameters in one pass, block by block, while each block is in the cache.
 *
 *     for t in 0 .. n-1:   g[t] = result of dist_all_reduce() for gradients[t]
 *     clip_norm > 0:       norm = sqrt(sum over t, i of g[t][i]^2);   if norm > clip_norm:   g = g * (clip_norm / norm)
 *     SGD:                 state[t] = momentum * state[t] - learning_rate * g[t];   parameter[t] += state[t]
 *                          (momentum 0:  parameter[t] -= learning_rate * g[t])
 *     CALLBACK:            fn(block, user_data) for each block of each tensor
 *
 * With clip_norm > 0, *out_norm receives the norm before clipping; otherwise it is unchanged. out_norm may be NULL.
 *
 * Parameters and states are mirrored. Either every replica passes its own copy, and all copies are equal (only replica
 * 0's copy is read), or all replicas pass the same memory. All copies are equal again afterwards. With clipping,
 * `gradients` serves as scratch memory, and each replica must pass its own. After an error, parameters and states are
 * unspecified.
 *
 * Shape    The gradients, parameters and states of tensor t have the same shape and are row-major without gaps.
 *          gradients are as in dist_all_reduce(), including contributions. parameters have the dtype that MEAN or SUM
 *          produces. SGD and clipping support f32 and f64.
 * Order    g is computed as in dist_all_reduce(). The norm is accumulated in f64 in an order that depends only on the
 *          list. SGD computes in the parameter's type and rounds each operation.
 * Context  Replica. Collective. All members pass the same options; replica 0's fn and user_data are used.
 * Blocks   Like dist_all_reduce(); twice with clipping.
 * Errors   Like dist_all_reduce(), and
 *          INVALID_ARGUMENT    apply is NULL, an option is out of range, or options->planned is 1.
 *          RESOURCE_EXHAUSTED  out of memory, with clipping.
 *          UNIMPLEMENTED       SGD or clipping with a dtype other than f32 and f64; clipping if gradients and
 *                              parameters have different dtypes.
 */
DIST_API DIST_NODISCARD dist_status dist_reduce_apply(
    dist_replica *replica, dist_reduce_op op, const dist_tensor *gradients, const dist_tensor *parameters,
    size_t n, const dist_apply_options *apply, const dist_collective_options *options, double *out_norm);

#ifdef __cplusplus
}
#endif
#endif /* DIST_COLLECTIVE_H */
