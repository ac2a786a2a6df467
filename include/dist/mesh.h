/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * Replicas that consist of several logical devices.
 *
 * A strategy of kind DIST_STRATEGY_MESH (TensorFlow: TPUStrategy) has R replicas of D logical devices each. Its device
 * assignment sets both numbers; without one, D is 1. A replica's function runs on logical device 0. There it can divide
 * tensors over its devices and run functions on all of them, which meet in collectives of their own:
 *
 *     const int64_t parts[] = {1, 2, 1, 1};                                    // 2 parts along dimension 1
 *     dist_value *split = NULL, *args = NULL, *result = NULL;
 *     dist_split_to_logical_devices(replica, image, parts, 4, NULL, &split);   // a tensor and its shards
 *     dist_value_create_list(strategy, &split, 1, &args);
 *     dist_run_on_devices(replica, fn, NULL, args, NULL, NULL, &result);       // fn(device d, shard d) on all devices
 *
 * Values, variables, input and reductions work as in the mirrored strategy.
 *
 * A logical device has a handle of type dist_replica * too; dist_replica_id() returns the number of the device. The
 * handle supports dist_replica_parallel_for(), and the collectives of collective.h and works of work.h among the
 * devices of its replica. A device can read variables: it sees its replica's copy. Operations of whole replicas (merge
 * calls, assignments, metrics) are rejected there.
 *
 * With DIST_PLACEMENT_CORES and an assignment made from dist_topology_from_host(), the thread of each device is pinned
 * to the device's CPU. The caller's thread, which can be device 0 of replica 0, is never moved. In reports, the members
 * are logical devices, and dist_error_info.logical_device names the one that failed. Inspection functions such as
 * dist_strategy_write_trace() show replicas only.
 */
#ifndef DIST_MESH_H
#define DIST_MESH_H

#include "run.h"
#include "topology.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Options of dist_split_to_logical_devices(). */
typedef struct dist_split_options {
  uint32_t struct_size;
  /* 1 = sizes that are not divisible are split as dist_partition_shard() describes; 0 = they are an error */
  int32_t uneven;
} dist_split_options;
#define DIST_SPLIT_OPTIONS_INIT \
  { sizeof(dist_split_options), 0 }

/** Initializes a dist_split_options to its defaults, like dist_strategy_options_init(). */
DIST_API void dist_split_options_init(dist_split_options *options, uint32_t struct_size_bytes);

/**
 * Splits a tensor over the replica's logical devices (TensorFlow: experimental_split_to_logical_devices): logical
 * device d gets the tile that dist_partition_shard() describes. The result is a DIST_VALUE_SHARDED. It can be used like
 * the whole tensor; its items, and dist_value_shard(), are the shards. Nothing is copied.
 *
 * Shape    value: a tensor of n dimensions, a sharded one (which is split again), a variable (the replica's copy), or a
 *          nest of these: each leaf is split. NONE values are kept. Each size must be divisible by its number of parts,
 *          unless options->uneven is 1; the product of the parts is D.
 * Context  Replica.
 * Owns     The result keeps the tensor's memory alive. The caller owns *out_value and releases it with
 *          dist_value_release().
 * Errors   INVALID_ARGUMENT     the partition is invalid, see dist_partition_check() (checked in the same order); an
 *                               argument is NULL; or a leaf is not a tensor.
 *          FAILED_PRECONDITION  the strategy is not a DIST_STRATEGY_MESH, or the call is made outside the replica's
 *                               function or on a logical device.
 *          RESOURCE_EXHAUSTED   out of memory.
 */
DIST_API DIST_NODISCARD dist_status dist_split_to_logical_devices(dist_replica *replica, dist_value *value,
                                                                  const int64_t *partition_dimensions,
                                                                  size_t n, const dist_split_options *options,
                                                                  dist_value **out_value);

/**
 * Assigns a tensor to one logical device (TensorFlow: experimental_assign_to_logical_device); the other devices have
 * nothing.
 *
 * Shape    value: like dist_split_to_logical_devices(), with any number of dimensions. 0 <= logical_device < D.
 * Context  Replica.
 * Owns     Like dist_split_to_logical_devices().
 * Errors   Like dist_split_to_logical_devices(), and
 *          INVALID_ARGUMENT  the strategy's use_spmd_partitioning is 1.
 */
DIST_API DIST_NODISCARD dist_status dist_assign_to_logical_device(dist_replica *replica, dist_value *value,
                                                                  int32_t logical_device,
                                                                  dist_value **out_value);

/**
 * Gives a tensor to every logical device (TensorFlow: experimental_replicate_to_logical_devices). All devices see the
 * same memory.
 *
 * Shape    value: like dist_split_to_logical_devices(), with any number of dimensions.
 * Context  Replica.
 * Owns     Like dist_split_to_logical_devices().
 * Errors   Like dist_split_to_logical_devices().
 */
DIST_API DIST_NODISCARD dist_status dist_replicate_to_logical_devices(dist_replica *replica,
                                                                      dist_value *value,
                                                                      dist_value **out_value);

/** Returns the number of logical devices of each replica, D: 1 for strategies of other kinds; 0 for NULL. */
DIST_API int32_t dist_strategy_num_logical_devices(const dist_strategy *strategy);

/**
 * Returns the device assignment with which the strategy was created; NULL if it has none, and for NULL.
 *
 * Owns     The result is borrowed: valid while the strategy exists.
 */
DIST_API const dist_device_assignment *dist_strategy_device_assignment(const dist_strategy *strategy);

/**
 * Returns the partition of a DIST_VALUE_SHARDED. `uneven` is 1 if the sizes of the shards are not those of an even
 * split; dist_value_shard() then returns the sizes.
 *
 * Shape    out_partition->shape and ->dimensions are borrowed from the value.
 * Owns     The result is borrowed: valid while the value exists.
 * Errors   INVALID_ARGUMENT  an argument is NULL, the value is not a sharded tensor, or struct_size is too small.
 */
DIST_API DIST_NODISCARD dist_status dist_value_partition(const dist_value *value,
                                                         dist_partition *out_partition);

/**
 * Returns the shard that a logical device has of a DIST_VALUE_SHARDED: a view of a part of the whole, and the position
 * at which that part begins.
 *
 * Shape    out_begin: [ndim]; it may be NULL. The shape and strides of the view are borrowed from the value.
 * Order    –
 * Owns     The view is borrowed: valid while the value exists.
 * Errors   INVALID_ARGUMENT  an argument is NULL, the value is not a sharded tensor, or there is no such logical
 *                            device.
 *          NOT_FOUND         the tensor is assigned to another logical device.
 */
DIST_API DIST_NODISCARD dist_status dist_value_shard(const dist_value *value, int32_t logical_device,
                                                     int64_t *out_begin, dist_tensor *out_tensor);

/** Options of dist_run_on_devices(). */
typedef struct dist_devices_options {
  uint32_t struct_size;
  int32_t reserved;   /* must be 0 */
  int64_t timeout_ns; /* time limit of the whole run on devices; 0 = no limit */
  /* how to join the devices' results: no partition, one for all leaves, or one for each leaf in the order of the nest
     (dictionaries: by key). The shape of a partition is ignored. A leaf without a partition (or with NULL) follows the
     rules of dist_run_on_devices(): tensors of equal sizes count as tiles if the first split argument has as many
     dimensions. If each device returns a whole tensor, pass a partition of kind REPLICATE */
  const dist_partition *const *results;
  size_t num_results;
  dist_cancel *cancel; /* cancels this run on devices only; may be NULL */
} dist_devices_options;
#define DIST_DEVICES_OPTIONS_INIT \
  { sizeof(dist_devices_options), 0, 0, 0, 0, 0 }

/** Initializes a dist_devices_options to its defaults, like dist_strategy_options_init(). */
DIST_API void dist_devices_options_init(dist_devices_options *options, uint32_t struct_size_bytes);

/**
 * Calls a function on every logical device of the replica and waits for all of them.
 *
 *     for d in 0 .. D-1, at the same time:   result[d] = fn(device[d], shard(args, d), shard(kwargs, d))
 *     *out_result = join(result[0], ..., result[D-1])
 *
 * Each sharded tensor in `args` and `kwargs`, at any depth, is replaced by device d's shard. If a tensor is assigned to
 * another device, device d finds a DIST_VALUE_NONE. Everything else is passed unchanged. All results must have the same
 * structure and are joined leaf by leaf. The first rule that applies to a leaf is used:
 *
 *     all devices returned the same dist_value,     The result is that value, or NONE.
 *       or all returned nothing
 *     options->results has a partition for it       The result is a tensor divided in that way. REPLICATE: the tensors
 *                                                   must have equal bits. ASSIGN: the result is the tensor of the
 *                                                   device that the partition names; the others are ignored.
 *     one returned a tensor, the others nothing     The result is that tensor, assigned to that device.
 *     the tensors fit together as tiles, divided    The result is a tensor that is split in the same way. Its tiles may
 *       like the first split argument (in args,     differ in size from the argument's; tiles in line have equal
 *       else in kwargs)                             sizes.
 *     the tensors have equal bits                   The result is that tensor, replicated.
 *
 * With one logical device, its result is returned unchanged. Tiles are copied into a new whole, on this replica's
 * cores. The result is then a DIST_VALUE_SHARDED whose shards are views of that whole.
 *
 * If a device fails, pending and later collectives of the others immediately return ABORTED with its report. The call
 * returns the status of the lowest device that failed on its own account. The replica itself fails only if its function
 * returns that status. The run on devices also ends when another replica fails, when the deadline of the run expires,
 * and with dist_strategy_cancel().
 *
 * Order    Like dist_all_reduce(), by logical device: the same bits in every run.
 * Context  Replica; not on a logical device. Until the call returns, the replica's own handle is rejected everywhere.
 * Blocks   Until every device's function has returned, or until options->timeout_ns expires; then as for
 *          dist_run_values().
 * Owns     Like dist_run_values().
 * Errors   INVALID_ARGUMENT     replica or fn is NULL; kwargs is not a dictionary; a partition in options->results is
 *                               invalid; or the results differ in structure or cannot be joined.
 *          FAILED_PRECONDITION  the strategy is not a DIST_STRATEGY_MESH; the call is made outside the replica's
 *                               function or on a logical device; or functions are still running on devices after an
 *                               earlier timeout.
 *          DEADLINE_EXCEEDED    options->timeout_ns expired.
 *          CANCELLED            options->cancel or the cancel object of the replicas' run was signalled, or
 *                               dist_strategy_cancel() was called.
 *          any                  the status that the first failing device returned.
 */
DIST_API DIST_NODISCARD dist_status dist_run_on_devices(dist_replica *replica, dist_values_fn fn,
                                                        void *user_data, dist_value *args, dist_value *kwargs,
                                                        const dist_devices_options *options,
                                                        dist_value **out_result);

/**
 * Returns the replica to which a logical device belongs; -1 for the handle of a replica itself, and for NULL.
 *
 * Context  Replica, or logical device.
 */
DIST_API int32_t dist_device_replica(const dist_replica *device);

/**
 * Returns the position of a logical device in the topology's mesh.
 *
 * Shape    out_coordinates: [4]
 * Context  Logical device.
 * Errors   INVALID_ARGUMENT     an argument is NULL.
 *          FAILED_PRECONDITION  the handle is that of a replica, or the strategy has no device assignment.
 */
DIST_API DIST_NODISCARD dist_status dist_device_coordinates(dist_replica *device, int32_t *out_coordinates);

/**
 * Returns the position of a logical device along a named axis of its replica's devices, and the size of the axis. The
 * axes are those of dist_mesh_options.axes, the last one varying fastest. Without that option they are "x", "y",
 * "z" and "core" if replicas are blocks of the mesh in which the core varies fastest (DIST_DEVICE_ORDER_MESH), and
 * otherwise one axis, "device".
 *
 * Context  Logical device.
 * Owns     Nothing. out_size may be NULL.
 * Errors   INVALID_ARGUMENT     an argument is NULL, or there is no such axis; the message lists the axes.
 *          FAILED_PRECONDITION  the handle is that of a replica.
 */
DIST_API DIST_NODISCARD dist_status dist_device_axis(dist_replica *device, const char *name,
                                                     int32_t *out_index, int32_t *out_size);

/**
 * Returns the group of the logical devices that differ from this one only in their position along an axis, for
 * dist_collective_options.group. The position along the axis is the rank in the group.
 *
 * Context  Logical device.
 * Owns     The strategy owns *out_group; do not destroy it.
 * Errors   Like dist_device_axis().
 */
DIST_API DIST_NODISCARD dist_status dist_device_axis_group(dist_replica *device, const char *name,
                                                           const dist_group **out_group);

/** The width of the halo around each member's tile of a tensor. Arrays that are NULL count as all zeros. */
typedef struct dist_halo {
  uint32_t struct_size;
  int32_t ndim;
  const int64_t *parts;   /* [ndim]: number of tiles in each dimension; must not be NULL. The product is R */
  const int64_t *low;     /* [ndim]: number of elements before the tile */
  const int64_t *high;    /* [ndim]: number of elements after the tile */
  const dist_edge *edges; /* [ndim]: content beyond the edges of the whole tensor; 0 = DIST_EDGE_ZERO */
} dist_halo;
#define DIST_HALO_INIT \
  { sizeof(dist_halo), 0, 0, 0, 0, 0 }

/** Initializes a dist_halo to its defaults, like dist_strategy_options_init(). */
DIST_API void dist_halo_init(dist_halo *halo, uint32_t struct_size_bytes);

/**
 * Builds a tile with its surroundings (halo) from the tiles of all members. The tile of rank r is the one at r's
 * position in a box of shape `parts`, the last index varying fastest, as dist_split_to_logical_devices() distributes
 * tiles.
 *
 *     w = the whole tensor; b, s = begin and size of this tile in it
 *     out[i] = w[b - low + i]   for each dimension, 0 <= i < low + s + high; beyond w, the edge mode defines w
 *
 * A halo can be wider than the neighbouring tiles. With DIST_EDGE_NONE, `out` ends where w ends.
 *
 * Shape    in, out: ndim >= 1 dimensions, one dtype, any strides; out has the sizes above. Tiles in line have equal
 *          sizes across the line, and any size otherwise. out must not overlap the in of any member.
 * Order    Bits are copied.
 * Context  Replica, or logical device. Collective. Only group, tag and timeout_ns of `options` are used.
 * Blocks   Like dist_all_reduce().
 * Errors   Like dist_all_reduce(), and
 *          INVALID_ARGUMENT  the product of the parts is not R, a width is negative, an edge mode is unknown, the tiles
 *                            do not fit together, or out has the wrong sizes.
 */
DIST_API DIST_NODISCARD dist_status dist_halo_exchange(dist_replica *device, const dist_tensor *in,
                                                       const dist_halo *halo, const dist_tensor *out,
                                                       const dist_collective_options *options);

/**
 * Redistributes a tensor among the members from one partition to another, of any two kinds.
 *
 *     w = the whole tensor, of which in[p] is the part dist_partition_shard(from, p)
 *     out[r] = the part dist_partition_shard(to, r) of w
 *
 * If all members have the whole tensor (REPLICATE), each takes its own part without communication. On a replica,
 * dist_split_to_logical_devices() and similar functions divide a sharded tensor differently without moving any data.
 *
 * Shape    from, to: the same shape, with known sizes, over R logical devices. in and out: the shapes of the shards,
 *          any strides; NULL if a member has no shard. out must not overlap the in of any member.
 * Order    Bits are copied.
 * Context  Replica, or logical device. Collective. Only group, tag and timeout_ns of `options` are used.
 * Blocks   Like dist_all_reduce().
 * Errors   Like dist_all_reduce(), and
 *          INVALID_ARGUMENT  a partition is invalid (see dist_partition_check()), or a shard has the wrong shape.
 */
DIST_API DIST_NODISCARD dist_status dist_reshard(dist_replica *device, const dist_partition *from,
                                                 const dist_partition *to, const dist_tensor *in,
                                                 const dist_tensor *out,
                                                 const dist_collective_options *options);

/**
 * Returns the number of bytes that dist_reshard() moves to a logical device from others; with a device of -1, to all
 * devices together.
 *
 * Shape    Like dist_reshard().
 * Errors   INVALID_ARGUMENT  an argument is NULL, a partition is invalid (see dist_partition_check()), the dtype or the
 *                            device does not exist, dist_reshard() would reject the partitions, or the number exceeds
 *                            64 bits.
 */
DIST_API DIST_NODISCARD dist_status dist_reshard_bytes(const dist_partition *from, const dist_partition *to,
                                                       dist_dtype dtype, int32_t logical_device,
                                                       size_t *out_bytes);

#ifdef __cplusplus
}
#endif
#endif /* DIST_MESH_H */
