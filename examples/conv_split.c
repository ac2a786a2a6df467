// SPDX-License-Identifier: Apache-2.0
//
// A convolutional network on images that are split spatially. Each logical device holds one tile of every
// image. Before each convolution, neighbouring tiles exchange the pixels along their edges (halo exchange).
// The result is bitwise identical to that of the unpartitioned network.
//
//     conv_split DIGITS.csv [ROWS COLUMNS]
//
// The grid of tiles is 2 x 4 by default. Use examples/data/digits.csv as the data.
#include <dist/dist.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Images have the shape [IMAGES, rows, columns, channels]. Each one is a square of SIDE x SIDE digits.
enum { IMAGES = 4, DIGIT = 8, SIDE = 8, PIXELS = SIDE * DIGIT, MOST_DEVICES = 64 };

// A size x size convolution, followed by ReLU and a pool x pool max pooling.
typedef struct {
  int64_t size, in, out, pool;
} layer;
static const layer layers[] = {{3, 1, 8, 1}, {3, 8, 8, 2}, {5, 8, 16, 2}};
enum { LAYERS = sizeof layers / sizeof layers[0] };

typedef struct {
  float *weights[LAYERS];  // [size, size, in, out]
  int64_t parts[4];        // the number of tiles along each dimension
  int exchange;            // 0 = do not exchange halos: tiles see zeros beyond their edges
} network;

static int64_t elements_of(const dist_tensor *t) {
  return t->shape[0] * t->shape[1] * t->shape[2] * t->shape[3];
}

// Allocates a row-major image of zeros. `shape` stays the caller's and must outlive it. On failure, data is
// NULL.
static dist_tensor make_image(int64_t *shape, int64_t rows, int64_t columns, int64_t channels) {
  const int64_t sizes[] = {IMAGES, rows, columns, channels};
  memcpy(shape, sizes, sizeof sizes);
  dist_tensor image = {NULL, DIST_F32, 4, shape, NULL};
  image.data = calloc((size_t)elements_of(&image), sizeof(float));
  return image;
}

// Copies the image into the middle of a larger one of zeros. Its rows may have gaps, its pixels may not.
static void pad(const dist_tensor *in, int64_t width, dist_tensor *out) {
  const int64_t row = in->shape[2] * in->shape[3];
  for (int64_t n = 0; n < IMAGES; n++) {
    for (int64_t r = 0; r < in->shape[1]; r++) {
      const int64_t from =
          in->strides != NULL ? n * in->strides[0] + r * in->strides[1] : (n * in->shape[1] + r) * row;
      const int64_t to = ((n * out->shape[1] + r + width) * out->shape[2] + width) * out->shape[3];
      memcpy((float *)out->data + to, (const float *)in->data + from, (size_t)row * sizeof(float));
    }
  }
}

// The tile with a border of `width` pixels: the neighbours' pixels, or zeros at the edges of the whole image.
static dist_status surround(const network *net, dist_replica *device, const dist_tensor *tile, int64_t width,
                            dist_tensor *out) {
  if (!net->exchange) {
    pad(tile, width, out);
    return DIST_OK;
  }
  const int64_t widths[] = {0, width, width, 0};
  const int32_t edges[] = {DIST_EDGE_ZERO, DIST_EDGE_ZERO, DIST_EDGE_ZERO, DIST_EDGE_ZERO};
  dist_halo halo = DIST_HALO_INIT;
  halo.ndim = 4;
  halo.parts = net->parts;
  halo.low = halo.high = widths;
  halo.edges = edges;
  return dist_halo_exchange(device, tile, &halo, out, NULL);
}

// Computes one output pixel. The order of its sum does not depend on its position.
static void convolve_pixel(const layer *l, const float *weights, const dist_tensor *in, int64_t image,
                           int64_t row, int64_t column, float *out) {
  float sums[16] = {0};
  for (int64_t i = 0; i < l->size; i++) {
    for (int64_t j = 0; j < l->size; j++) {
      const int64_t pixel = (image * in->shape[1] + row + i) * in->shape[2] + column + j;
      const float *values = (const float *)in->data + pixel * l->in;
      for (int64_t c = 0; c < l->in; c++)
        for (int64_t o = 0; o < l->out; o++)
          sums[o] += values[c] * weights[((i * l->size + j) * l->in + c) * l->out + o];
    }
  }
  for (int64_t o = 0; o < l->out; o++)  // max pooling: keep the largest value
    if (sums[o] > out[o]) out[o] = sums[o];
}

// Writes the layer's results to `out`, which must contain zeros.
static void run_layer(const layer *l, const float *weights, const dist_tensor *in, dist_tensor *out) {
  for (int64_t n = 0; n < IMAGES; n++) {
    for (int64_t r = 0; r < out->shape[1] * l->pool; r++) {
      for (int64_t c = 0; c < out->shape[2] * l->pool; c++) {
        const int64_t pixel = (n * out->shape[1] + r / l->pool) * out->shape[2] + c / l->pool;
        convolve_pixel(l, weights, in, n, r, c, (float *)out->data + pixel * l->out);
      }
    }
  }
}

// Runs the whole network on a tile, or on complete images if device is NULL. The caller frees out->data with
// free().
static dist_status run_network(const network *net, dist_replica *device, const dist_tensor *images,
                               int64_t *out_shape, dist_tensor *out) {
  int64_t shapes[2][4], padded_shape[4];
  dist_tensor tile = *images;
  dist_status status = DIST_OK;
  for (int k = 0; k < LAYERS && !status; k++) {
    const layer *l = &layers[k];
    const int64_t rows = tile.shape[1], columns = tile.shape[2];
    dist_tensor padded = make_image(padded_shape, rows + l->size - 1, columns + l->size - 1, l->in);
    dist_tensor next = make_image(shapes[k % 2], rows / l->pool, columns / l->pool, l->out);
    if (padded.data == NULL || next.data == NULL) status = dist_fail(DIST_RESOURCE_EXHAUSTED, "no memory");
    if (!status) status = surround(net, device, &tile, l->size / 2, &padded);
    if (!status) run_layer(l, net->weights[k], &padded, &next);
    free(padded.data);
    if (k > 0) free(tile.data);
    tile = next;
  }
  *out = tile;
  out->shape = memcpy(out_shape, tile.shape, 4 * sizeof *out_shape);
  return status;
}

// Runs on a logical device. args is the list (its tile of the images).
static dist_status run_tile(dist_replica *device, dist_value *args, dist_value *kwargs,
                            dist_value **out_result, void *user_data) {
  (void)kwargs;
  dist_tensor tile, output = {NULL, 0, 0, NULL, NULL};
  int64_t shape[4];
  dist_status status = dist_value_tensor(dist_value_item(args, 0), &tile);
  if (!status) status = run_network(user_data, device, &tile, shape, &output);
  if (!status) status = dist_value_create_tensor(dist_replica_strategy(device), &output, out_result);
  free(output.data);
  return status;
}

// Runs on the replica: splits the images, runs the devices, and joins the results in the same layout.
static dist_status run_split(dist_replica *replica, dist_value *args, dist_value *kwargs,
                             dist_value **out_result, void *user_data) {
  (void)kwargs;
  const network *net = user_data;
  dist_value *tiles = NULL, *tile_args = NULL;
  dist_status status =
      dist_split_to_logical_devices(replica, dist_value_item(args, 0), net->parts, 4, NULL, &tiles);
  if (!status) status = dist_value_create_list(dist_replica_strategy(replica), &tiles, 1, &tile_args);
  if (!status) status = dist_run_on_devices(replica, run_tile, user_data, tile_args, NULL, NULL, out_result);
  dist_value_release(tile_args);
  dist_value_release(tiles);
  return status;
}

static dist_status make_strategy(int32_t rows, int32_t columns, dist_strategy **out_strategy) {
  const int32_t mesh_shape[] = {1, 1, rows, columns};
  int32_t coordinates[MOST_DEVICES][4] = {{0}};
  for (int32_t d = 0; d < rows * columns; d++) {
    coordinates[d][2] = d / columns;
    coordinates[d][3] = d % columns;
  }
  dist_topology *topology = NULL;
  dist_device_assignment *assignment = NULL;
  dist_status status =
      dist_topology_create(mesh_shape, 4, coordinates[0], 1, rows * columns, NULL, &topology);
  if (!status)
    status =
        dist_device_assignment_build(topology, mesh_shape, NULL, 4, 1, DIST_DEVICE_ORDER_MESH, &assignment);
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  dist_mesh_options mesh = DIST_MESH_OPTIONS_INIT;
  options.mesh = &mesh;
  options.kind = DIST_STRATEGY_MESH;
  mesh.device_assignment = assignment;
  if (!status) status = dist_strategy_create(&options, out_strategy);
  dist_device_assignment_destroy(assignment);
  dist_topology_destroy(topology);
  return status;
}

// Each line has 64 pixels from 0 to 16 and a class, which is ignored.
static int load_images(const char *path, float *images) {
  FILE *file = fopen(path, "r");
  int good = file != NULL;
  for (int n = 0; n < IMAGES * SIDE * SIDE && good; n++) {
    const int image = n / (SIDE * SIDE), top = n / SIDE % SIDE * DIGIT, left = n % SIDE * DIGIT;
    for (int i = 0; i < DIGIT * DIGIT && good; i++) {
      float *pixel = &images[(image * PIXELS + top + i / DIGIT) * PIXELS + left + i % DIGIT];
      good = fscanf(file, "%f,", pixel) == 1;
    }
    good = good && fscanf(file, "%*d") == 0;
  }
  if (file != NULL) fclose(file);
  return good;
}

// Pseudorandom weights between -1 / fan-in and 1 / fan-in. A real program would load trained ones.
static int make_weights(network *net) {
  uint32_t state = 1;
  for (int k = 0; k < LAYERS; k++) {
    const int64_t fan_in = layers[k].size * layers[k].size * layers[k].in, n = fan_in * layers[k].out;
    net->weights[k] = malloc((size_t)n * sizeof(float));
    if (net->weights[k] == NULL) return 0;
    for (int64_t i = 0; i < n; i++) {
      state = state * 1664525u + 1013904223u;
      net->weights[k][i] = ((float)(state >> 8) / 8388608.0f - 1.0f) / (float)fan_in;
    }
  }
  return 1;
}

// Counts the results of the split run that differ in any bit from those of the unpartitioned run.
static dist_status compare(dist_strategy *strategy, network *net, const dist_tensor *images,
                           const dist_tensor *expected, int64_t *out_wrong) {
  dist_value *value = NULL, *args = NULL, *output = NULL;
  dist_tensor got;
  dist_status status = dist_value_create_tensor(strategy, images, &value);
  if (!status) status = dist_value_create_list(strategy, &value, 1, &args);
  if (!status) status = dist_run_values(strategy, run_split, net, args, NULL, NULL, &output);
  if (!status) status = dist_value_tensor(output, &got);
  if (!status && memcmp(got.shape, expected->shape, 4 * sizeof *got.shape) != 0)
    status = dist_fail(DIST_INTERNAL, "the joined result has another shape");
  *out_wrong = 0;
  for (int64_t i = 0; !status && i < elements_of(expected); i++) {
    const float *numbers[] = {(const float *)got.data + i, (const float *)expected->data + i};
    *out_wrong += memcmp(numbers[0], numbers[1], sizeof(float)) != 0;
  }
  dist_value_release(output);
  dist_value_release(args);
  dist_value_release(value);
  return status;
}

static dist_status run_program(network *net, const dist_tensor *images) {
  dist_strategy *strategy = NULL;
  dist_tensor whole = {NULL, 0, 0, NULL, NULL};
  int64_t shape[4], wrong[2] = {0, 0};
  dist_status status = run_network(net, NULL, images, shape, &whole);
  if (!status) status = make_strategy((int32_t)net->parts[1], (int32_t)net->parts[2], &strategy);
  for (net->exchange = 0; net->exchange < 2 && !status; net->exchange++)
    status = compare(strategy, net, images, &whole, &wrong[net->exchange]);
  if (status) {
    fprintf(stderr, "conv_split: %s\n", dist_last_error());
  } else {
    printf("%" PRId64 " x %" PRId64 " tiles, %" PRId64 " numbers; other than unpartitioned: %" PRId64
           ", without halos %" PRId64 "\n",
           net->parts[1], net->parts[2], elements_of(&whole), wrong[1], wrong[0]);
    if (wrong[1] != 0) status = DIST_INTERNAL;
  }
  free(whole.data);
  return dist_strategy_destroy(strategy) ? DIST_INTERNAL : status;
}

int main(int argc, char **argv) {
  static float pixels[IMAGES * PIXELS * PIXELS];
  static const int64_t shape[] = {IMAGES, PIXELS, PIXELS, 1};
  const dist_tensor images = {pixels, DIST_F32, 4, shape, NULL};
  network net = {.parts = {1, 2, 4, 1}};
  if (argc == 4) {
    net.parts[1] = strtol(argv[2], NULL, 10);
    net.parts[2] = strtol(argv[3], NULL, 10);
  }
  // A pooling window must not straddle two tiles.
  const int fits = net.parts[1] > 0 && net.parts[2] > 0 && PIXELS / 4 % net.parts[1] == 0 &&
                   PIXELS / 4 % net.parts[2] == 0 && net.parts[1] * net.parts[2] <= MOST_DEVICES;
  if ((argc != 2 && argc != 4) || !fits || !load_images(argv[1], pixels)) {
    fprintf(stderr, "usage: conv_split DIGITS.csv [ROWS COLUMNS]; ROWS and COLUMNS divide %d\n", PIXELS / 4);
    return 2;
  }
  const dist_status status = make_weights(&net) ? run_program(&net, &images) : DIST_RESOURCE_EXHAUSTED;
  for (int k = 0; k < LAYERS; k++) free(net.weights[k]);
  return status ? EXIT_FAILURE : EXIT_SUCCESS;
}
