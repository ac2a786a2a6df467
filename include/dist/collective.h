/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * Collectives among replicas.
 *
 * Every replica of the run makes the same collectives in the same order. On arrival each states what it came
 * for; if the others came for something else, left, failed, or do not come in time, then every member gets an
 * error at once, the same report for all, and the later collectives of that group fail with it too until the run
 * has ended. Nobody hangs.
 * When a collective returns, for whatever reason, no peer touches its buffers any longer; after an error the
 * contents of its outputs are unspecified.
 */
#ifndef DIST_COLLECTIVE_H
#define DIST_COLLECTIVE_H

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dist_collective_options {
  uint32_t struct_size;
  int32_t numerics; /* DIST_NUMERICS_...; 0: the strategy's, which is ORDERED where its options do not say */
  const char *tag;  /* a name for reports, equal on all members; NULL: none */
  int64_t timeout_ns; /* longest wait for a peer; 0: the strategy's; < 0: no limit */
  /* who meets; NULL: all replicas. Below, R is its size; r, p and root are ranks in it */
  const dist_group *group;
  const double *weights;    /* MEAN: one weight (>= 0) a contribution, given by all members or by none */
  size_t contributions;     /* tensors that this replica adds to each sum; 0, on all members: one */
  dist_reduce_fn reduce_fn; /* DIST_REDUCE_USER's operator; the same on all members */
  void *reduce_user_data;
  const int64_t *splits; /* all_to_all: R sizes along the axis, which `in` is cut into; NULL: equal ones */
  int32_t axis;          /* the dimension that parts are cut from or joined along; < 0 counts from the end */
  int32_t planned;       /* 1: *out_work is a plan, which dist_work_start() begins, any number of times */
  /* not NULL: the call returns at once, and the work is under way; see dist_work_wait() */
  dist_work **out_work;
  int64_t bytes_per_pack; /* about how much a pack of a planned list has; 0: the strategy's, else all */
  int32_t implementation; /* DIST_COMMUNICATION_...: taken, and of no consequence for the bits */
  int32_t reserved;       /* 0 */
  dist_cancel *cancel;    /* ends the group's rounds in this run, for all members; NULL: none */
  /* DIST_REDUCE_USER: of one element of reduce_fn, the same on all members; 0: the dtype's. At most 4,096, and a
     multiple of each tensor's dtype. Tensors hold whole elements: none may have a gap inside, or a cut along the axis.
     TREE of more than 3 contributions: less, as 3,072 of up to 7, 1,536 of up to 31, 576 of 1,024; a report says it */
  size_t reduce_element_bytes;
} dist_collective_options;
#define DIST_COLLECTIVE_OPTIONS_INIT \
  { sizeof(dist_collective_options), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/** As dist_strategy_options_init(), of dist_collective_options. */
DIST_API void dist_collective_options_init(dist_collective_options *options, uint32_t struct_size_bytes);

/**
 * Reduces n tensors over all replicas; every replica gets the results.
 *
 *     for t in 0 .. n-1, every element i, every replica r:
 *       acc = in[0][t][i];   for p in 1 .. R-1:   acc = op(acc, in[p][t][i]);   out[r][t][i] = acc
 *
 * With options->contributions = k, `in` holds k lists one after another, and replica p's contributions in[p][j*n + t]
 * enter the fold in the order of j; k may differ between replicas. With weights w, MEAN is
 * (sum of w[p][j] * in[p][j*n + t][i]) / (sum of w[p][j]): a replica whose batch is empty gives weight 0. If all
 * weights are 0 the result is NaN.
 *
 * Shape    in[t] and out[t] have equal shapes and dtypes, and in[t] the same on every replica. Any strides; without
 *          gaps is fastest. n = 0 and tensors without elements are legal. out == in, or out[t] the same view as in[t],
 *          is in place; any other overlap of in[t] and out[t] is an error, but for views that interlock (even and odd
 *          elements). Tensors of one list are not compared. All replicas may pass one out buffer: it is written once.
 * Order    ORDERED: left to right by replica id: the same bits on every replica, in every run, whatever the size.
 *          f16 and bf16 accumulate in f32 and round once. MEAN divides the folded sum by the number of contributions
 *          before that rounding; of integers it is out of place only, into f64 (from i32, u32, i64, u64) or f32 (from
 *          the smaller ones). A weighted product is rounded in the accumulator. Integers wrap. MIN and MAX give NaN
 *          if any is NaN; min(-0, +0) is -0. A result that is NaN may be any NaN. COMPLEX64 has SUM, MEAN, PROD; BOOL
 *          has MIN (and), MAX (or).
 *          REPRODUCIBLE: SUM and MEAN of f16, bf16, f32, f64, and what is exact anyway (integers, MIN, MAX). The
 *          contributions are added exactly and rounded once: SUM is the correctly rounded sum. MEAN divides in f64 the
 *          sum that is rounded to f64 (to odd; of f64 to nearest). A weighted product is rounded to f64 first.
 *          TREE: all that ORDERED has, and as it, but by a fixed binary tree over the contributions x[0] .. x[N-1] of
 *          all replicas, in their order (replica p's k contributions are k of them):
 *
 *              T(a, 1) = x[a];   T(a, n) = T(a, m) op T(a + m, n - m), m being the largest power of two below n
 *              result = T(0, N), rounded once where ORDERED is, MEAN divided before;  N = 7: ((0 1)(2 3))((4 5)6)
 *
 *          So n contributions in a row are folded to one subtotal without any other, where n is a power of two and
 *          the first's place a multiple of it, and else to at most 2 * ceil(log2 n). Subtotals have the accumulator's
 *          type (f32 of f16 and bf16). As in ORDERED, the bits depend on the contributions and their order alone, not on
 *          how they are dealt to replicas and workers. Weights w give T of w[a] * x[a] divided by T of w[a]. Where the
 *          order changes nothing (integers without weights, MIN, MAX), and up to three contributions, the bits are
 *          ORDERED's. reduce_fn is called in the tree's order.
 * Context  Replica. Collective.
 * Blocks   Until every member has come, or the deadline, or a failure of one.
 * Errors   INVALID_ARGUMENT   NULL, a bad dtype, op, shape, weight or overlap here; or the replicas disagree.
 *          DEADLINE_EXCEEDED  not all came in time; the report lists who did not.
 *          ABORTED            a replica failed or left; the report names it. Or all wait for each other in different
 *                             groups; the report has the cycle.
 *          CANCELLED          a cancel object, of this member's options or a peer's, or of the run; dist_strategy_cancel().
 *          FAILED_PRECONDITION  the replica's run has ended.
 *          UNIMPLEMENTED      REPRODUCIBLE of PROD, USER, weighted integers, complex64, or of a scan.
 */
DIST_API DIST_NODISCARD dist_status dist_all_reduce(dist_replica *replica, dist_reduce_op op,
                                                    const dist_tensor *in, dist_tensor *out, size_t n,
                                                    const dist_collective_options *options);

/**
 * Reduces n tensors over all replicas; the root gets the results.
 *
 *     out[root][t] = what dist_all_reduce() gives
 *
 * Shape    As dist_all_reduce(); `out` is written on the root alone and may be NULL elsewhere.
 * Order    As dist_all_reduce().
 * Context  Replica. Collective.
 * Blocks   As dist_all_reduce().
 * Errors   As dist_all_reduce(); INVALID_ARGUMENT also where root is not in 0 .. R-1 or differs.
 */
DIST_API DIST_NODISCARD dist_status dist_reduce_to_root(dist_replica *replica, dist_reduce_op op,
                                                        int32_t root, const dist_tensor *in, dist_tensor *out,
                                                        size_t n, const dist_collective_options *options);

/**
 * Reduces n tensors over all replicas; every replica gets a part of each result.
 *
 *     whole = what dist_all_reduce() gives for tensor t;   m[r] = out[r][t].shape[axis]
 *     out[r][t] = whole[m[0] + ... + m[r-1]  up to  m[0] + ... + m[r]] along the axis
 *
 * Shape    in[t] as in dist_all_reduce(). out[r][t] has its shape but along options->axis, where the sizes of all
 *          members, which may differ and be 0, add up to in[t]'s. Out of place only.
 * Order    As dist_all_reduce().
 * Context  Replica. Collective.
 * Blocks   As dist_all_reduce().
 * Errors   As dist_all_reduce(); INVALID_ARGUMENT also where the sizes do not add up.
 */
DIST_API DIST_NODISCARD dist_status dist_reduce_scatter(dist_replica *replica, dist_reduce_op op,
                                                        const dist_tensor *in, dist_tensor *out, size_t n,
                                                        const dist_collective_options *options);

/**
 * Joins the tensors of all replicas; every replica gets the results.
 *
 *     for t in 0 .. n-1, every replica r:   out[r][t] = concatenation of in[0][t], ..., in[R-1][t] along the axis
 *
 * Shape    in[p][t] have equal dtypes and ndim >= 1, and equal shapes but along options->axis, where they may differ
 *          (and be 0); there out[t]'s size is their sum. Out of place, but in[t] may be its own place in out[t].
 *          Any strides.
 * Order    Bits are copied, in the order of ranks.
 * Context  Replica. Collective.
 * Blocks   As dist_all_reduce().
 * Errors   As dist_all_reduce(); INVALID_ARGUMENT also for a scalar, or where the sizes do not add up.
 */
DIST_API DIST_NODISCARD dist_status dist_all_gather(dist_replica *replica, const dist_tensor *in,
                                                    dist_tensor *out, size_t n,
                                                    const dist_collective_options *options);

/**
 * Joins the tensors of all replicas; the root gets the results.
 *
 *     out[root][t] = what dist_all_gather() gives
 *
 * Shape    As dist_all_gather(); `out` is written on the root alone and may be NULL elsewhere.
 * Order    As dist_all_gather().
 * Context  Replica. Collective.
 * Blocks   As dist_all_reduce().
 * Errors   As dist_all_gather(); INVALID_ARGUMENT also where root is not in 0 .. R-1 or differs.
 */
DIST_API DIST_NODISCARD dist_status dist_gather_to_root(dist_replica *replica, int32_t root,
                                                        const dist_tensor *in, dist_tensor *out, size_t n,
                                                        const dist_collective_options *options);

/**
 * Gives every replica the root's tensors.
 *
 *     for t in 0 .. n-1, every element i, every replica r:   out[r][t][i] = in[root][t][i]
 *
 * Shape    As dist_all_reduce(). `in` is read on the root alone and may be NULL elsewhere; the root may pass
 *          out == in.
 * Order    Bits are copied.
 * Context  Replica. Collective.
 * Blocks   As dist_all_reduce().
 * Errors   As dist_all_reduce(); INVALID_ARGUMENT also where root is not in 0 .. R-1 or differs.
 */
DIST_API DIST_NODISCARD dist_status dist_broadcast(dist_replica *replica, int32_t root, const dist_tensor *in,
                                                   dist_tensor *out, size_t n,
                                                   const dist_collective_options *options);

/**
 * Gives every replica a part of each of the root's tensors.
 *
 *     m[r] = out[r][t].shape[axis];   out[r][t] = in[root][t][m[0] + ... + m[r-1]  up to  m[0] + ... + m[r]]
 *
 * Shape    As dist_reduce_scatter(). `in` is read on the root alone and may be NULL elsewhere. Out of place, but
 *          the root's out[t] may be its own place in in[t].
 * Order    Bits are copied.
 * Context  Replica. Collective.
 * Blocks   As dist_all_reduce().
 * Errors   As dist_reduce_scatter(); INVALID_ARGUMENT also where root is not in 0 .. R-1 or differs.
 */
DIST_API DIST_NODISCARD dist_status dist_scatter_from_root(dist_replica *replica, int32_t root,
                                                           const dist_tensor *in, dist_tensor *out, size_t n,
                                                           const dist_collective_options *options);

/**
 * Every replica gives every replica a part of its tensors.
 *
 *     in[p][t] is cut along the axis into R parts, of sizes options->splits[0 .. R-1], or equal ones
 *     for t in 0 .. n-1, every replica r:   out[r][t] = concatenation of part r of in[0][t], ..., of in[R-1][t]
 *
 * Shape    in[p][t] have equal dtypes and ndim >= 1, and equal shapes but along options->axis. Without splits their
 *          size there is a multiple of R; with them it is their sum, for each of the n tensors. out[r][t]'s size is
 *          the sum of the parts that r gets. Out of place only.
 * Order    Bits are copied.
 * Context  Replica. Collective.
 * Blocks   As dist_all_reduce().
 * Errors   As dist_all_gather().
 */
DIST_API DIST_NODISCARD dist_status dist_all_to_all(dist_replica *replica, const dist_tensor *in,
                                                    dist_tensor *out, size_t n,
                                                    const dist_collective_options *options);

/**
 * Reduces n tensors over the replicas up to each one.
 *
 *     INCLUSIVE:   out[r][t] = op(in[0][t], ..., in[r][t])
 *     EXCLUSIVE:   out[r][t] = op(in[0][t], ..., in[r-1][t]);   out[0][t] = what op leaves unchanged: 0 for SUM, 1 for
 *                  PROD, the largest (inf, true) for MIN, the smallest for MAX; for USER it stays as it is
 *
 * Shape    As dist_all_reduce(); each replica has an out of its own.
 * Order    As dist_all_reduce(), ORDERED or TREE: each result is what that gives of these replicas alone. No MEAN.
 * Context  Replica. Collective.
 * Blocks   As dist_all_reduce().
 * Errors   As dist_all_reduce(); INVALID_ARGUMENT also for an unknown kind.
 */
DIST_API DIST_NODISCARD dist_status dist_scan(dist_replica *replica, dist_reduce_op op, int32_t kind,
                                              const dist_tensor *in, dist_tensor *out, size_t n,
                                              const dist_collective_options *options);

/**
 * Every replica gives its tensors to one other.
 *
 *     for t in 0 .. n-1, every replica r:   out[r][t] = in[source[r]][t];   where source[r] is -1: out[r][t] = 0
 *
 * `destination` is who gets this replica's tensors, `source` whose it gets; -1: nobody. They must fit together:
 * destination[p] is r exactly where source[r] is p. A replica may be its own.
 *
 * Shape    in[t] and out[t] have equal shapes and dtypes, the same on every replica. Out of place only.
 * Order    Bits are copied.
 * Context  Replica. Collective.
 * Blocks   As dist_all_reduce().
 * Errors   As dist_all_reduce(); INVALID_ARGUMENT also where a rank is not in -1 .. R-1 or the pairs do not fit.
 */
DIST_API DIST_NODISCARD dist_status dist_permute(dist_replica *replica, int32_t destination, int32_t source,
                                                 const dist_tensor *in, dist_tensor *out, size_t n,
                                                 const dist_collective_options *options);

/**
 * Returns when every member has come. What each wrote before, all can read after.
 *
 * Context  Replica. Collective.
 * Blocks   As dist_all_reduce().
 * Errors   As dist_all_reduce().
 */
DIST_API DIST_NODISCARD dist_status dist_barrier(dist_replica *replica,
                                                 const dist_collective_options *options);

/**
 * dist_all_reduce() on a nest: every leaf is reduced, and the result has the value's structure. Indexed slices are
 * joined instead: the rows and indices of all replicas, one after another, the rows of a MEAN divided by R; an index
 * that several replicas have comes several times.
 *
 * The one-device and default strategies have nobody to meet: tensors are given back as they are, of whatever dtype.
 *
 * Shape    A tensor, or lists, tuples and dictionaries of tensors and indexed slices, the same structure on all
 *          replicas. Of a per-replica or mirrored value, or a variable, this replica's component is meant.
 * Order    As dist_all_reduce().
 * Context  Replica. Collective.
 * Blocks   As dist_all_reduce().
 * Owns     value is borrowed. *out_value is the caller's: dist_value_release().
 * Errors   As dist_all_reduce(); RESOURCE_EXHAUSTED no memory; INVALID_ARGUMENT also for out_work or contributions,
 *          and for a leaf that is no tensor; UNIMPLEMENTED for other operators, or weights, on indexed slices.
 */
DIST_API DIST_NODISCARD dist_status dist_all_reduce_value(dist_replica *replica, dist_reduce_op op,
                                                          dist_value *value,
                                                          const dist_collective_options *options,
                                                          dist_value **out_value);

/**
 * dist_all_gather() on a nest: every leaf is joined, and the result has the value's structure. Two rounds: one for
 * the sizes.
 *
 * Shape    As dist_all_reduce_value(); leaves as in dist_all_gather().
 * Order    As dist_all_gather().
 * Context  Replica. Collective.
 * Blocks   As dist_all_reduce().
 * Owns     value is borrowed. *out_value is the caller's: dist_value_release().
 * Errors   As dist_all_reduce_value(); UNIMPLEMENTED for indexed slices.
 */
DIST_API DIST_NODISCARD dist_status dist_all_gather_value(dist_replica *replica, dist_value *value,
                                                          const dist_collective_options *options,
                                                          dist_value **out_value);

/**
 * Some replicas of a strategy, for collectives among them: dist_collective_options.group. Groups may overlap and
 * meet at the same time. Members that wait for each other in different groups get an error, not a hang.
 *
 * Over several workers ids and ranks are those of all, and every worker makes the same groups in the same order, as
 * one of the calls that all of them make (workers.h), also one that has no member. After a failure there is no group on
 * a worker that was told of it; the strategy is as it was. Members of different workers that wait for each other in
 * different groups are not found out: their deadlines end that. A group of one worker's replicas meets without the others.
 *
 * Shape    1 <= n <= R ids in 0 .. R-1, ascending: the rank in the group is the position, so that sums keep the
 *          order of ids.
 * Context  Strategy, concurrent; not while a run is under way. Over several workers it waits for that run.
 * Blocks   Over several workers: until all make the group, at most the strategy's timeout.
 * Owns     *out_group is the caller's: dist_group_destroy(), before dist_strategy_destroy().
 * Errors   INVALID_ARGUMENT     NULL, n, or an id that is out of range or not above the one before. The workers give
 *                               other ids; the report has both lists, of long ones the beginnings.
 *          FAILED_PRECONDITION  a run is under way; a forked child.
 *          RESOURCE_EXHAUSTED   no memory.
 *          DEADLINE_EXCEEDED    a worker did not make it in time, or a run was under way for so long.
 *          ABORTED              a worker failed, or did something else; the report names it.
 *          UNAVAILABLE          a worker is lost.
 *          CANCELLED            dist_strategy_cancel().
 */
DIST_API DIST_NODISCARD dist_status dist_group_create(dist_strategy *strategy, const int32_t *replica_ids,
                                                      size_t n, dist_group **out_group);

/**
 * Ends a group. NULL is fine. Over several workers it ends on this one alone, and waits for nobody: where others use it
 * later, their collectives are told that this worker has left, when its run is over.
 *
 * Context  Strategy, concurrent; not while a run is under way.
 * Owns     Takes the group, unless it fails.
 * Errors   FAILED_PRECONDITION  a run is under way, or work of the group is left; the group is as it was.
 */
DIST_API DIST_NODISCARD dist_status dist_group_destroy(dist_group *group);

/** How many replicas it has, of all workers; 0 for NULL. */
DIST_API int32_t dist_group_size(const dist_group *group);

/** The rank of a replica in the group; -1 where it is no member, or for NULL. */
DIST_API int32_t dist_group_rank(const dist_group *group, int32_t replica_id);

/** How a program asks its collectives to be done (TensorFlow: CommunicationOptions, CollectiveHints). */
typedef struct dist_communication_options {
  uint32_t struct_size;
  int32_t implementation; /* DIST_COMMUNICATION_... */
  int64_t bytes_per_pack; /* a planned list is cut into packs of about this size; 0: not given */
  int64_t timeout_ns;  /* longest wait for a peer; < 0: no limit; 0: not given, unless has_timeout says so */
  int32_t has_timeout; /* 1: timeout_ns is given even where it is 0, which is no limit too */
  int32_t reserved;    /* 0 */
} dist_communication_options;
#define DIST_COMMUNICATION_OPTIONS_INIT \
  { sizeof(dist_communication_options), 0, 0, 0, 0, 0 }

/** As dist_strategy_options_init(), of dist_communication_options. */
DIST_API void dist_communication_options_init(dist_communication_options *options,
                                              uint32_t struct_size_bytes);

/**
 * One set of options overridden by another: what `over` gives (an implementation that is not AUTO, a size of packs, a
 * timeout), else what `base` does. A collective's own options override its strategy's by this rule. `over` may be NULL:
 * a checked copy of `base`.
 *
 * Owns     Nothing. out_options, whose struct_size is set, may be base or over.
 * Errors   INVALID_ARGUMENT  base or out_options is NULL, an unknown implementation, a negative bytes_per_pack.
 */
DIST_API DIST_NODISCARD dist_status dist_communication_options_merge(const dist_communication_options *base,
                                                                     const dist_communication_options *over,
                                                                     dist_communication_options *out_options);

#ifdef __cplusplus
}
#endif
#endif /* DIST_COLLECTIVE_H */

/* ---- Experimental: what follows may change or go in any version, as types.h says ------------------- */

#if defined(DIST_EXPERIMENTAL) && !defined(DIST_COLLECTIVE_EXPERIMENTAL_H)
#define DIST_COLLECTIVE_EXPERIMENTAL_H

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dist_apply_options {
  uint32_t struct_size;
  int32_t kind;         /* DIST_APPLY_... */
  double learning_rate; /* SGD */
  double momentum;      /* SGD; 0: none, and no states */
  double clip_norm; /* > 0: gradients are scaled down to this global norm where it is larger; 0: no clip */
  /* num_states lists of n tensors like the parameters; SGD with momentum: one list */
  const dist_tensor *states;
  size_t num_states;
  dist_apply_fn fn; /* CALLBACK */
  void *user_data;
  double *out_norm; /* clip_norm > 0: the norm before the clip; NULL: not wanted */
} dist_apply_options;
#define DIST_APPLY_OPTIONS_INIT \
  { sizeof(dist_apply_options), 0, 0, 0, 0, 0, 0, 0, 0, 0 }

/** As dist_strategy_options_init(), of dist_apply_options. */
DIST_API void dist_apply_options_init(dist_apply_options *options, uint32_t struct_size_bytes);

/**
 * Reduces gradients and updates parameters with them in one pass, block by block while a block is in cache.
 *
 *     for t in 0 .. n-1:   g[t] = what dist_all_reduce() gives of gradients[t]
 *     clip_norm > 0:       norm = sqrt(sum over t, i of g[t][i]^2);   g = g * (clip_norm / norm) where norm is larger
 *     SGD:                 state[t] = momentum * state[t] - learning_rate * g[t];   parameter[t] = parameter[t] + state[t]
 *                          (momentum 0:  parameter[t] = parameter[t] - learning_rate * g[t])
 *     CALLBACK:            fn(block, user_data) for each piece of each tensor
 *
 * Parameters and states are mirrored: every replica gives its own copy, equal to the others' (replica 0's is read), or
 * all give one and the same; afterwards all are equal again. With a clip `gradients` are used as scratch
 * memory, and are each replica's own.
 *
 * Shape    gradients, parameters and states of tensor t have one shape, row-major without gaps. gradients as in
 *          dist_all_reduce(), contributions too; parameters of what MEAN or SUM give. SGD: f32 and f64.
 * Order    g as in dist_all_reduce(). The norm is added in f64 in an order that depends on the list alone. SGD in the
 *          parameter's type, each operation rounded.
 * Context  Replica. Collective: the same options on all members, replica 0's fn and user_data are used.
 * Blocks   As dist_all_reduce(); twice with a clip.
 * Errors   As dist_all_reduce(); INVALID_ARGUMENT also for options out of range. RESOURCE_EXHAUSTED no
 *          memory, with a clip. UNIMPLEMENTED for SGD of another dtype.
 *          After an error parameters and states are unspecified.
 */
DIST_API DIST_NODISCARD dist_status dist_reduce_apply(dist_replica *replica, dist_reduce_op op,
                                                      dist_tensor *gradients, dist_tensor *parameters,
                                                      size_t n, const dist_apply_options *apply,
                                                      const dist_collective_options *options);

/**
 * Writes the options as TensorFlow prints them, "Options(bytes_per_pack=0,timeout_seconds=None,
 * implementation=CommunicationImplementation.AUTO)", as text with an end mark, cut to `size_bytes`.
 *
 * Errors   As dist_communication_options_merge(); also size_bytes = 0.
 */
DIST_API DIST_NODISCARD dist_status dist_communication_options_describe(
    const dist_communication_options *options, char *out_text, size_t size_bytes);

#ifdef __cplusplus
}
#endif
#endif /* DIST_COLLECTIVE_EXPERIMENTAL_H */
