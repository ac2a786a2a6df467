/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file
 * Replicas of logical devices.
 *
 * A strategy with DIST_STRATEGY_MESH (TensorFlow: TPUStrategy) has R replicas of D logical devices each: as many as its
 * device assignment says, else D is 1. It treats values, variables, input and reductions as the mirrored strategy does.
 * A replica's function runs on logical device 0; there it divides tensors over its devices, and runs functions on all
 * of them, which meet in collectives of their own:
 *
 *     dist_split_to_logical_devices(replica, image, parts, 4, NULL, &split);    a tensor, and who has which part of it
 *     dist_run_on_devices(replica, fn, NULL, args, NULL, NULL, &result);        fn(device d, shard d), on every device
 *
 * A logical device's handle is a dist_replica * as well, whose dist_replica_id() is the logical device's number: it has
 * dist_parallel_for(), and the collectives of collective.h and works of work.h, among its replica's devices. What concerns
 * whole replicas (merge calls, assignments, metrics) is refused there; it may read variables: its replica's copy. With
 * DIST_PLACEMENT_CORES, and an assignment made from dist_topology_from_host(), each device's thread is kept on the CPU that
 * the device is; the caller's thread, which may be device 0 of replica 0, is never moved. Reports call the members logical
 * devices, and dist_error_info.logical_device is the culprit. dist_write_trace() and its like show replicas only.
 */
#ifndef DIST_MESH_H
#define DIST_MESH_H

#include "run.h"
#include "topology.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dist_split_options {
  uint32_t struct_size;
  int32_t uneven; /* 1: sizes that do not divide are split as dist_partition_shard() says */
} dist_split_options;
#define DIST_SPLIT_OPTIONS_INIT \
  { sizeof(dist_split_options), 0 }

/** As dist_strategy_options_init(), of dist_split_options. */
DIST_API void dist_split_options_init(dist_split_options *options, uint32_t struct_size_bytes);

/**
 * Splits a tensor over the replica's logical devices (TensorFlow: experimental_split_to_logical_devices): logical device d
 * has the tile that dist_partition_shard() says. The result is a DIST_VALUE_SHARDED: it still reads as the whole
 * tensor, wherever a tensor does; its items, and dist_value_shard(), are the shards. Nothing is copied.
 *
 * Shape    value: a tensor of n dimensions, a sharded one (which is split anew), a variable (the replica's copy), or a nest
 *          of them: each leaf is split. Nothings stay. Each of its sizes is divisible by its number of parts, unless
 *          options->uneven; the product of the parts is D.
 * Context  Replica.
 * Owns     The result keeps the tensor's memory. *out_value is the caller's: dist_value_release().
 * Errors   INVALID_ARGUMENT     as dist_partition_check(), in its order; NULL; a leaf that is no tensor.
 *          FAILED_PRECONDITION  not a DIST_STRATEGY_MESH; outside the replica's function; on a logical device.
 *          RESOURCE_EXHAUSTED   no memory.
 */
DIST_API DIST_NODISCARD dist_status dist_split_to_logical_devices(dist_replica *replica, dist_value *value,
                                                                  const int64_t *partition_dimensions,
                                                                  size_t n, const dist_split_options *options,
                                                                  dist_value **out_value);

/**
 * Gives a tensor to one logical device (TensorFlow: experimental_assign_to_logical_device); the others have nothing.
 *
 * Shape    value: as dist_split_to_logical_devices(), of any number of dimensions. 0 <= logical_device < D.
 * Context  Replica.
 * Owns     As dist_split_to_logical_devices().
 * Errors   As dist_split_to_logical_devices(); INVALID_ARGUMENT also where the strategy's use_spmd_partitioning is 1.
 */
DIST_API DIST_NODISCARD dist_status dist_assign_to_logical_device(dist_replica *replica, dist_value *value,
                                                                  int32_t logical_device,
                                                                  dist_value **out_value);

/**
 * Gives a tensor to each logical device (TensorFlow: experimental_replicate_to_logical_devices): all see the same memory.
 *
 * Shape    value: as dist_split_to_logical_devices(), of any number of dimensions.
 * Context  Replica.
 * Owns     As dist_split_to_logical_devices().
 * Errors   As dist_split_to_logical_devices().
 */
DIST_API DIST_NODISCARD dist_status dist_replicate_to_logical_devices(dist_replica *replica,
                                                                      dist_value *value,
                                                                      dist_value **out_value);

#ifdef __cplusplus
}
#endif
#endif /* DIST_MESH_H */

/* ---- Experimental: what follows may change or go in any version, as types.h says ------------------- */

#if defined(DIST_EXPERIMENTAL) && !defined(DIST_MESH_EXPERIMENTAL_H)
#define DIST_MESH_EXPERIMENTAL_H

#include "run.h"
#include "topology.h"

#ifdef __cplusplus
extern "C" {
#endif

/** How many logical devices each replica has: D. 1 for strategies of other kinds; 0 for NULL. */
DIST_API int32_t dist_strategy_num_logical_devices(const dist_strategy *strategy);

/**
 * The device assignment that the strategy was made with; NULL where there is none, or for NULL.
 *
 * Owns     Borrowed: valid while the strategy is.
 */
DIST_API const dist_device_assignment *dist_strategy_device_assignment(const dist_strategy *strategy);

/**
 * How a DIST_VALUE_SHARDED is divided. `uneven` is 1 where the shards' sizes are not those of an even split; then
 * dist_value_shard() gives the sizes.
 *
 * Shape    out_partition->shape and ->dimensions are borrowed from the value.
 * Owns     Borrowed: valid while the value is.
 * Errors   INVALID_ARGUMENT  NULL; the value is not a sharded tensor; struct_size is too small.
 */
DIST_API DIST_NODISCARD dist_status dist_value_partition(const dist_value *value,
                                                         dist_partition *out_partition);

/**
 * What a logical device has of a DIST_VALUE_SHARDED: a view of a part of the whole, and where that part begins.
 *
 * Shape    out_begin: [ndim]; it may be NULL. The view's shape and strides are borrowed from the value.
 * Order    –
 * Owns     Borrowed: valid while the value is.
 * Errors   INVALID_ARGUMENT  NULL; the value is not a sharded tensor; there is no such logical device.
 *          NOT_FOUND         the tensor is assigned to another logical device.
 */
DIST_API DIST_NODISCARD dist_status dist_value_shard(const dist_value *value, int32_t logical_device,
                                                     int64_t *out_begin, dist_tensor *out_tensor);

typedef struct dist_devices_options {
  uint32_t struct_size;
  int32_t reserved;   /* 0 */
  int64_t timeout_ns; /* of the whole run on devices; 0: none */
  /* How the devices' results are joined: no partition, one for all leaves, or one for each leaf in the order of the
   * nest (dictionaries: by key). The shape of a partition is not read. Where a leaf has none, or NULL, the rules of
   * dist_run_on_devices() hold: tensors of equal sizes count as tiles if the first split argument has as
   * many dimensions. If each device's tensor is a whole one, give a partition of kind REPLICATE. */
  const dist_partition *const *results;
  size_t num_results;
  dist_cancel *cancel; /* ends this run on devices, and no other; NULL: none */
} dist_devices_options;
#define DIST_DEVICES_OPTIONS_INIT \
  { sizeof(dist_devices_options), 0, 0, 0, 0, 0 }

/** As dist_strategy_options_init(), of dist_devices_options. */
DIST_API void dist_devices_options_init(dist_devices_options *options, uint32_t struct_size_bytes);

/**
 * Calls a function on every logical device of the replica and waits for all of them.
 *
 *     for d in 0 .. D-1, at the same time:   result[d] = fn(device[d], shard(args, d), shard(kwargs, d))
 *     *out_result = join(result[0], ..., result[D-1])
 *
 * Wherever `args` or `kwargs` has a sharded tensor, at any depth, device d finds its shard there. Of a tensor that is
 * assigned to another device it finds nothing (DIST_VALUE_NONE). Everything else it finds as it is. The results have
 * the same structure, and are joined leaf by leaf. The first rule that holds for a leaf is used:
 *
 *     all devices gave the same dist_value,         The result is that value, or nothing.
 *       or all gave nothing
 *     options->results has a partition for it       The result is a tensor that is divided so. REPLICATE: the tensors
 *                                                   must have equal bits. ASSIGN: the result is the tensor of the
 *                                                   device that the partition names; the others' are ignored.
 *     one gave a tensor, the others nothing         The result is that tensor, assigned to that device.
 *     the tensors fit together as tiles, cut as     The result is a tensor that is split in the same way. Its tiles may
 *       the first split argument is (in args,       have other sizes than the argument's; tiles in line have equal
 *       else in kwargs)                             sizes.
 *     the tensors have equal bits                   The result is that tensor, replicated.
 *
 * With one logical device, its result is returned as it is. Tiles are copied into a new whole, on this replica's cores.
 * The result is then a DIST_VALUE_SHARDED, whose shards are views of that whole.
 * If a device fails, pending and later collectives of the others return ABORTED at once, with its report. The call
 * returns the status of the lowest device whose failure was its own. The replica itself fails only if its function
 * returns that status. The run on devices also ends when another replica fails, when the run's deadline is over, and by
 * dist_strategy_cancel().
 *
 * Order    As dist_all_reduce(), by logical device: the same bits in every run.
 * Context  Replica; not on a logical device. Until it returns, the replica's own handle is refused everywhere.
 * Blocks   Until every device's function has returned, or options->timeout_ns is over; then as dist_run_values().
 * Owns     As dist_run_values().
 * Errors   INVALID_ARGUMENT     NULL replica or fn; args is not a list or tuple, or kwargs not a dictionary; a wrong
 *                               partition in options->results; results that differ in structure, or cannot be joined.
 *          FAILED_PRECONDITION  not a DIST_STRATEGY_MESH; outside the replica's function; on a logical device; devices
 *                               are still inside after an earlier deadline.
 *          DEADLINE_EXCEEDED    options->timeout_ns is over.
 *          CANCELLED            options->cancel; the cancel object of the run of replicas; dist_strategy_cancel().
 *          any                  what the first failing device returned.
 */
DIST_API DIST_NODISCARD dist_status dist_run_on_devices(dist_replica *replica, dist_values_fn fn,
                                                        void *user_data, dist_value *args, dist_value *kwargs,
                                                        const dist_devices_options *options,
                                                        dist_value **out_result);

/**
 * The replica that a logical device is part of; -1 for the handle of a replica itself, or NULL.
 *
 * Context  Replica; a logical device.
 */
DIST_API int32_t dist_device_replica(const dist_replica *device);

/**
 * Where in the topology's mesh a logical device is.
 *
 * Shape    out_coordinates: [4]
 * Context  Replica; a logical device.
 * Errors   INVALID_ARGUMENT     NULL.
 *          FAILED_PRECONDITION  a replica's handle; the strategy has no device assignment.
 */
DIST_API DIST_NODISCARD dist_status dist_device_coordinates(dist_replica *device, int32_t *out_coordinates);

/**
 * Where along a named axis of its replica's devices a logical device is: dist_strategy_options.axes, whose last runs
 * fastest. Without them the axes are "x", "y", "z" and "core", where replicas are blocks of the mesh in which the core
 * runs fastest (DIST_DEVICE_ORDER_MESH); else one axis, "device".
 *
 * Context  Replica; a logical device.
 * Owns     Nothing. out_size may be NULL.
 * Errors   INVALID_ARGUMENT     NULL; no such axis, and the message has those that there are.
 *          FAILED_PRECONDITION  a replica's handle.
 */
DIST_API DIST_NODISCARD dist_status dist_device_axis(dist_replica *device, const char *name,
                                                     int32_t *out_index, int32_t *out_size);

/**
 * The group of the logical devices that differ from this one in their place along an axis alone, for
 * dist_collective_options.group. The place along the axis is the rank in it.
 *
 * Context  Replica; a logical device.
 * Owns     The strategy's: not to be destroyed.
 * Errors   As dist_device_axis().
 */
DIST_API DIST_NODISCARD dist_status dist_device_axis_group(dist_replica *device, const char *name,
                                                           const dist_group **out_group);

/** How far around its tile of a tensor a member sees. An array may be NULL: zeros. */
typedef struct dist_halo {
  uint32_t struct_size;
  int32_t ndim;
  const int64_t *parts; /* [ndim]: into how many tiles each dimension is cut; not NULL. Their product is R */
  const int64_t *low;   /* [ndim]: how many elements before the tile */
  const int64_t *high;  /* [ndim]: how many elements behind it */
  const int32_t *edges; /* [ndim]: DIST_EDGE_...: what is beyond the edges of the whole */
} dist_halo;
#define DIST_HALO_INIT \
  { sizeof(dist_halo), 0, 0, 0, 0, 0 }

/** As dist_strategy_options_init(), of dist_halo. */
DIST_API void dist_halo_init(dist_halo *halo, uint32_t struct_size_bytes);

/**
 * A tile of a tensor with what surrounds it, out of the tiles of all members: rank r has the tile whose index is r's place
 * in a box of the shape `parts`, the last one running fastest, as dist_split_to_logical_devices() deals them.
 *
 *     w = the whole tensor; b, s = begin and size of this tile in it
 *     out[i] = w[b - low + i]   for each dimension, 0 <= i < low + s + high, where beyond w the edge says what w is
 *
 * A halo may be wider than the tiles beside it. With DIST_EDGE_NONE `out` ends where w does.
 *
 * Shape    in, out: ndim >= 1 dimensions, of one dtype, any strides; out of the sizes above. Tiles in line have equal
 *          sizes there, else any. out overlaps no member's in.
 * Order    Bits are copied.
 * Context  Replica; a logical device. Collective. Of `options` group, tag and timeout_ns count; out_work is NULL.
 * Blocks   As dist_all_reduce().
 * Errors   As dist_all_reduce(); INVALID_ARGUMENT also for parts whose product is not R, a negative width, an unknown
 *          edge, tiles that do not fit together, or an out of the wrong sizes.
 */
DIST_API DIST_NODISCARD dist_status dist_halo_exchange(dist_replica *device, const dist_tensor *in,
                                                       const dist_halo *halo, dist_tensor *out,
                                                       const dist_collective_options *options);

/**
 * What a member has of a tensor under one partition, out of what all have of it under another: any two kinds.
 *
 *     w = the whole tensor, of which in[p] is what dist_partition_shard(from, p) says
 *     out[r] = what dist_partition_shard(to, r) says
 *
 * Where all have everything (REPLICATE) each takes its own. From a replica, dist_split_to_logical_devices() and its like
 * divide a sharded tensor anew without moving anything.
 *
 * Shape    from, to: of one shape, whose sizes are known, over R logical devices. in and out: the shards' shapes, any
 *          strides; NULL where a member has nothing. out overlaps no member's in.
 * Order    Bits are copied.
 * Context  Replica; a logical device. Collective. Of `options` group, tag and timeout_ns count; out_work is NULL.
 * Blocks   As dist_all_reduce().
 * Errors   As dist_all_reduce(); INVALID_ARGUMENT also as dist_partition_check(), and for a shard of another shape.
 */
DIST_API DIST_NODISCARD dist_status dist_reshard(dist_replica *device, const dist_partition *from,
                                                 const dist_partition *to, const dist_tensor *in,
                                                 dist_tensor *out, const dist_collective_options *options);

/**
 * How many bytes dist_reshard() brings to a logical device from others; -1 as device: to all of them together.
 *
 * Shape    As dist_reshard().
 * Errors   INVALID_ARGUMENT  NULL, as dist_partition_check(), no dtype, no such device, partitions that dist_reshard()
 *                            would refuse, more bytes than 64 bits count.
 */
DIST_API DIST_NODISCARD dist_status dist_reshard_bytes(const dist_partition *from, const dist_partition *to,
                                                       dist_dtype dtype, int32_t logical_device,
                                                       int64_t *out_bytes);

#ifdef __cplusplus
}
#endif
#endif /* DIST_MESH_EXPERIMENTAL_H */
