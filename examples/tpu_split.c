// SPDX-License-Identifier: Apache-2.0
//
// The example of TPUStrategy with logical devices from the tf.distribute documentation, in C: one replica
// with eight logical devices. A batch of images is split over them, 2 ways in height and 4 ways in width. The
// model of this example inverts the images. The program prints each device's part of the output.
//
//     topology = tf.tpu.experimental.initialize_tpu_system(resolver)
//     device_assignment = tf.tpu.experimental.DeviceAssignment.build(
//         topology, computation_shape=[1, 2, 2, 2], num_replicas=1)
//     strategy = tf.distribute.TPUStrategy(
//         resolver, experimental_device_assignment=device_assignment,
//         experimental_spmd_xla_partitioning=True)
//     iterator = iter(inputs)
//
//     def step_fn(inputs):
//       inputs = strategy.experimental_split_to_logical_devices(inputs, [1, 2, 4, 1])
//       # model() function will be executed on 8 logical devices with `inputs` split 2 * 4 ways.
//       output = model(inputs)
//       return output
//     strategy.run(step_fn, args=(next(iterator),))
#include <dist/dist.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum {
  IMAGES = 4,
  HEIGHT = 4,
  WIDTH = 8,
  CHANNELS = 3,
  PIXELS = IMAGES * HEIGHT * WIDTH * CHANNELS,
  WHITE = 1000
};
static const int64_t image_shape[] = {IMAGES, HEIGHT, WIDTH, CHANNELS};

// Returns a topology of eight devices. dist_topology_from_host() would return one with this machine's CPUs.
static dist_status initialize(dist_topology **out_topology) {
  static const int32_t mesh_shape[] = {1, 2, 2, 2};
  int32_t coordinates[8][4];
  for (int32_t d = 0; d < 8; d++) {
    coordinates[d][0] = 0;
    coordinates[d][1] = d / 4;
    coordinates[d][2] = d / 2 % 2;
    coordinates[d][3] = d % 2;
  }
  return dist_topology_create(mesh_shape, 4, coordinates[0], 1, 8, NULL, out_topology);
}

static dist_status make_strategy(dist_topology *topology, dist_strategy **out_strategy) {
  static const int32_t computation_shape[] = {1, 2, 2, 2};
  dist_device_assignment *device_assignment = NULL;
  dist_status status = dist_device_assignment_build(topology, computation_shape, NULL, 4, 1,
                                                    DIST_DEVICE_ORDER_AUTO, &device_assignment);
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  dist_mesh_options mesh = DIST_MESH_OPTIONS_INIT;
  options.mesh = &mesh;
  options.kind = DIST_STRATEGY_MESH;
  mesh.device_assignment = device_assignment;
  mesh.use_spmd_partitioning = 1;
  if (!status) status = dist_strategy_create(&options, out_strategy);
  dist_device_assignment_destroy(device_assignment);  // the strategy holds its own reference
  return status;
}

// Runs the model on one logical device. Its input is a view with gaps, its part of the images. It returns the
// inverted part.
static dist_status model(dist_replica *device, dist_value *args, dist_value *kwargs, dist_value **out_result,
                         void *user_data) {
  (void)kwargs;
  (void)user_data;
  dist_tensor in, out;
  dist_status status = dist_value_tensor(dist_value_item(args, 0), &in);
  if (!status) status = dist_value_create_tensor(dist_replica_strategy(device), &in, out_result);
  if (!status) status = dist_value_tensor(*out_result, &out);
  if (status) return status;
  const int64_t pixels = out.shape[0] * out.shape[1] * out.shape[2] * out.shape[3];
  for (int64_t i = 0; i < pixels; i++) ((int32_t *)out.data)[i] = WHITE - ((int32_t *)out.data)[i];
  return DIST_OK;
}

// step_fn: runs on the replica. args is the list (inputs).
static dist_status step(dist_replica *replica, dist_value *args, dist_value *kwargs, dist_value **out_result,
                        void *user_data) {
  (void)kwargs;
  (void)user_data;
  static const int64_t partition_dimensions[] = {1, 2, 4, 1};
  dist_value *inputs = NULL, *model_args = NULL;
  dist_status status = dist_split_to_logical_devices(replica, dist_value_item(args, 0), partition_dimensions,
                                                     4, NULL, &inputs);
  if (!status) status = dist_value_create_list(dist_replica_strategy(replica), &inputs, 1, &model_args);
  if (!status) status = dist_run_on_devices(replica, model, NULL, model_args, NULL, NULL, out_result);
  dist_value_release(model_args);
  dist_value_release(inputs);
  return status;
}

// The output can still be read as one tensor of all images.
static dist_status print(const dist_value *output) {
  dist_tensor whole, shard;
  int64_t begin[4];
  dist_status status = dist_value_tensor(output, &whole);
  for (int32_t d = 0; d < 8 && !status; d++) {
    status = dist_value_shard(output, d, begin, &shard);
    if (status) break;
    printf("logical device %" PRId32 ": rows %" PRId64 "-%" PRId64 ", columns %" PRId64 "-%" PRId64
           ", first pixel %" PRId32 "\n",
           d, begin[1], begin[1] + shard.shape[1] - 1, begin[2], begin[2] + shard.shape[2] - 1,
           *(const int32_t *)shard.data);
  }
  if (status) return status;
  int32_t wrong = 0;
  for (int32_t i = 0; i < PIXELS; i++) wrong += ((const int32_t *)whole.data)[i] != WHITE - i;
  printf("all %d pixels: %" PRId32 " wrong\n", PIXELS, wrong);
  return DIST_OK;
}

static dist_status run_program(dist_strategy *strategy) {
  static int32_t images[PIXELS];
  for (int32_t i = 0; i < PIXELS; i++) images[i] = i;
  const dist_tensor tensor = {images, DIST_I32, 4, image_shape, NULL};
  dist_dataset_options options = DIST_DATASET_OPTIONS_INIT;
  options.global_batch_size = IMAGES;
  dist_dataset *inputs = NULL;
  dist_iterator *iterator = NULL;
  dist_value *batch = NULL, *args = NULL, *output = NULL;
  dist_status status = dist_dataset_create_from_tensors(strategy, &tensor, 1, &options, &inputs);
  if (!status) status = dist_iterator_create(inputs, &iterator);
  if (!status) status = dist_iterator_next(iterator, &batch);
  if (!status) status = dist_value_create_list(strategy, &batch, 1, &args);
  if (!status) status = dist_run_values(strategy, step, NULL, args, NULL, NULL, &output);
  if (!status) status = print(output);
  dist_value_release(output);
  dist_value_release(args);
  dist_value_release(batch);
  dist_iterator_destroy(iterator);
  dist_dataset_destroy(inputs);
  return status;
}

int main(void) {
  dist_topology *topology = NULL;
  dist_strategy *strategy = NULL;
  dist_status status = initialize(&topology);
  if (!status) status = make_strategy(topology, &strategy);
  if (!status) status = run_program(strategy);
  if (status) fprintf(stderr, "tpu_split: %s\n", dist_last_error());
  if (dist_strategy_destroy(strategy)) status = DIST_INTERNAL;
  dist_topology_destroy(topology);
  return status ? EXIT_FAILURE : EXIT_SUCCESS;
}
