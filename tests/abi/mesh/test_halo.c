/* SPDX-License-Identifier: Apache-2.0
 *
 * Halo exchange: compares every element of the result with the whole tensor, for every kind of edge, on grids
 * of several shapes, also with halos wider than tiles. Also rejected arguments.
 */
#include "tests/abi/mesh_support.h"

enum { MOST_ELEMENTS = 2048 };

typedef struct plan {
  int64_t shape[2], parts[2], low[2], high[2];
  int32_t edges[2];
  int gaps; /* `in` and `out` have gaps between their rows */
} plan;

/* Returns the source of position `at` in a dimension of n elements, or -1 for a zero. Follows the definition
 * step by step. */
static int64_t source_of(int64_t at, int64_t n, int32_t edge) {
  while (at < 0 || at >= n) {
    switch (edge) {
      case DIST_EDGE_WRAP: at += at < 0 ? n : -n; break;
      case DIST_EDGE_CLAMP: at = at < 0 ? 0 : n - 1; break;
      case DIST_EDGE_REFLECT: at = n == 1 ? 0 : at < 0 ? -at : 2 * (n - 1) - at; break;
      default: return -1;
    }
  }
  return at;
}

typedef struct span {
  int64_t begin, size; /* the tile */
  int64_t from, count; /* the tile with its halo */
} span;

/* Part `index` of n elements divided into p parts as evenly as possible. */
static span span_of(const plan *p, int dimension, int64_t index) {
  const int64_t n = p->shape[dimension], parts = p->parts[dimension], rest = n % parts;
  span s;
  s.begin = n / parts * index + (index < rest ? index : rest);
  s.size = n / parts + (index < rest);
  s.from = s.begin - p->low[dimension];
  int64_t end = s.begin + s.size + p->high[dimension];
  if (p->edges[dimension] == DIST_EDGE_NONE) {
    if (s.from < 0) s.from = 0;
    if (end > n) end = n;
  }
  s.count = end > s.from ? end - s.from : 0;
  return s;
}

static dist_status exchange_and_compare(dist_replica *device, dist_value *args, dist_value *kwargs,
                                        dist_value **out_result, void *user_data) {
  (void)args, (void)kwargs, (void)out_result;
  const plan *p = user_data;
  const int32_t me = dist_replica_id(device);
  const span rows = span_of(p, 0, me / p->parts[1]), columns = span_of(p, 1, me % p->parts[1]);
  const int64_t gap = p->gaps ? 3 : 0;
  int64_t in[MOST_ELEMENTS], out[MOST_ELEMENTS];
  const int64_t in_shape[] = {rows.size, columns.size}, in_strides[] = {columns.size + gap, 1};
  const int64_t out_shape[] = {rows.count, columns.count}, out_strides[] = {columns.count + gap, 1};
  EXPECT(rows.size * in_strides[0] <= MOST_ELEMENTS && rows.count * out_strides[0] <= MOST_ELEMENTS);
  for (int64_t i = 0; i < MOST_ELEMENTS; i++) in[i] = out[i] = -7;
  for (int64_t i = 0; i < rows.size; i++)
    for (int64_t j = 0; j < columns.size; j++)
      in[i * in_strides[0] + j] = 1 + (rows.begin + i) * p->shape[1] + columns.begin + j;
  const dist_tensor tile = {in, DIST_I64, 2, in_shape, p->gaps ? in_strides : NULL};
  dist_tensor result = {out, DIST_I64, 2, out_shape, p->gaps ? out_strides : NULL};
  dist_halo halo = DIST_HALO_INIT;
  halo.ndim = 2;
  halo.parts = p->parts;
  halo.low = p->low;
  halo.high = p->high;
  halo.edges = p->edges;
  TRY(dist_halo_exchange(device, &tile, &halo, &result, NULL));
  for (int64_t i = 0; i < rows.count; i++) {
    for (int64_t j = 0; j < columns.count + gap; j++) {
      int64_t expected = -7; /* gaps must not change */
      if (j < columns.count) {
        const int64_t row = source_of(rows.from + i, p->shape[0], p->edges[0]);
        const int64_t column = source_of(columns.from + j, p->shape[1], p->edges[1]);
        expected = row < 0 || column < 0 ? 0 : 1 + row * p->shape[1] + column;
      }
      EXPECT(out[i * out_strides[0] + j] == expected);
    }
  }
  return DIST_OK;
}

static dist_status run_plan(dist_replica *replica, void *user_data) {
  return dist_run_on_devices(replica, exchange_and_compare, user_data, NULL, NULL, NULL, NULL);
}

static void every_edge_on_every_grid(void **state) {
  (void)state;
  static const int64_t grids[][2] = {{1, 6}, {6, 1}, {2, 3}, {3, 2}},
                       shapes[][2] = {{6, 12}, {7, 8}, {6, 6}, {1, 9}};
  static const int64_t widths[][4] = {{1, 1, 1, 1}, {0, 2, 1, 0}, {3, 3, 3, 3}, {9, 0, 0, 20}, {0, 0, 0, 0}};
  dist_strategy *strategy = mesh_of(2, 6);
  for (size_t g = 0; g < COUNT_OF(grids); g++)
    for (size_t s = 0; s < COUNT_OF(shapes); s++)
      for (size_t w = 0; w < COUNT_OF(widths); w++)
        for (int32_t edge = DIST_EDGE_ZERO; edge <= DIST_EDGE_NONE; edge++) {
          plan p = {{shapes[s][0], shapes[s][1]},
                    {grids[g][0], grids[g][1]},
                    {widths[w][0], widths[w][1]},
                    {widths[w][2], widths[w][3]},
                    {edge, DIST_EDGE_ZERO + (edge - DIST_EDGE_ZERO + (int32_t)w) % 5},
                    (int)(s % 2)};
          const dist_status status = dist_run(strategy, run_plan, &p, NULL);
          if (status != DIST_OK) {
            fail_msg("grid %zu, shape %zu, widths %zu, edge %d: %s", g, s, w, edge, dist_last_error());
          }
        }
  assert_ok(dist_strategy_destroy(strategy));
}

/* ---- Rejected calls ---- */

enum wrong { PARTS, NEGATIVE, EDGE, SCALAR, DTYPE, SIZE, TILES, OVERLAP, WIDTHS_DIFFER, PLANNED, WRONGS };
static const char *const words[] = {
    "product of parts",      "widths must be at least 0", "edges[0] is 9", "scalar",
    "must have the same",    "tile and halo have",        "does not fit",  "overlaps in of",
    "other widths or edges", "cannot be planned"};

static dist_status exchange_wrongly(dist_replica *device, dist_value *args, dist_value *kwargs,
                                    dist_value **out_result, void *user_data) {
  (void)args, (void)kwargs, (void)out_result;
  const enum wrong wrong = *(const enum wrong *)user_data;
  const int32_t me = dist_replica_id(device);
  int64_t in[6] = {1, 2, 3, 4, 5, 6}, out[8];
  int64_t in_shape[] = {2, 2}, out_shape[] = {3, 2}, parts[] = {2, 1}, low[] = {1, 0}, high[] = {0, 0};
  int32_t edges[] = {DIST_EDGE_ZERO, DIST_EDGE_ZERO};
  dist_tensor tile = {in, DIST_I64, 2, in_shape, NULL}, result = {out, DIST_I64, 2, out_shape, NULL};
  dist_collective_options options = DIST_COLLECTIVE_OPTIONS_INIT;
  switch (wrong) {
    case PARTS: parts[0] = 1; break;
    case NEGATIVE: low[0] = -1; break;
    case EDGE: edges[0] = 9; break;
    case SCALAR: tile.ndim = result.ndim = 0; break;
    case DTYPE: result.dtype = DIST_F64; break;
    case SIZE: out_shape[0] = me == 0 ? 3 : 2; break;
    case TILES:
      in_shape[1] = 2 + me;
      out_shape[1] = 2 + me;
      break;
    case OVERLAP: result.data = me == 0 ? in : out; break;
    case WIDTHS_DIFFER:
      low[0] = 1 + me;
      out_shape[0] = 3 + me;
      break;
    default: options.planned = 1;
  }
  dist_halo halo = DIST_HALO_INIT;
  halo.ndim = tile.ndim;
  halo.parts = parts, halo.low = low, halo.high = high, halo.edges = edges;
  return dist_halo_exchange(device, &tile, &halo, &result, &options);
}
static dist_status run_wrongly(dist_replica *replica, void *user_data) {
  return dist_run_on_devices(replica, exchange_wrongly, user_data, NULL, NULL, NULL, NULL);
}

static void what_does_not_fit_is_refused_on_all(void **state) {
  (void)state;
  dist_strategy *strategy = mesh_of(1, 2);
  for (enum wrong wrong = PARTS; wrong < WRONGS; wrong++)
    assert_fails(dist_run(strategy, run_wrongly, &wrong, NULL), DIST_INVALID_ARGUMENT, words[wrong]);
  assert_ok(dist_strategy_destroy(strategy));
}

/* One tile has a different width from the two others in its row. The report names its member, whichever it
 * is. */
static dist_status differ_in_width(dist_replica *device, dist_value *args, dist_value *kwargs,
                                   dist_value **out_result, void *user_data) {
  (void)args, (void)kwargs, (void)out_result;
  static const int64_t parts[] = {3, 2};
  const int32_t me = dist_replica_id(device), odd = *(const int32_t *)user_data;
  int64_t in[3] = {0}, out[3];
  const int64_t shape[] = {1, me == odd ? 3 : 2};
  const dist_tensor tile = {in, DIST_I64, 2, shape, NULL};
  dist_tensor result = {out, DIST_I64, 2, shape, NULL};
  dist_halo halo = DIST_HALO_INIT;
  halo.ndim = 2;
  halo.parts = parts;
  return dist_halo_exchange(device, &tile, &halo, &result, NULL);
}
static dist_status run_differing(dist_replica *replica, void *user_data) {
  return dist_run_on_devices(replica, differ_in_width, user_data, NULL, NULL, NULL, NULL);
}

static void who_differs_in_its_line_is_named(void **state) {
  (void)state;
  dist_strategy *strategy = mesh_of(1, 6);
  for (int32_t odd = 0; odd < 6; odd++) {
    assert_fails(dist_run(strategy, run_differing, &odd, NULL), DIST_INVALID_ARGUMENT, "does not fit");
    assert_blames(odd, "i64[1, 2]", "i64[1, 3]");
  }
  assert_ok(dist_strategy_destroy(strategy));
}

/* A member that does not arrive is reported, as in every collective. */
static dist_status leave_early(dist_replica *device, dist_value *args, dist_value *kwargs,
                               dist_value **out_result, void *user_data) {
  if (dist_replica_id(device) == 1) return DIST_OK;
  return exchange_wrongly(device, args, kwargs, out_result, user_data);
}
static dist_status run_alone(dist_replica *replica, void *user_data) {
  return dist_run_on_devices(replica, leave_early, user_data, NULL, NULL, NULL, NULL);
}

static void a_missing_device_ends_it(void **state) {
  (void)state;
  dist_strategy *strategy = mesh_of(2, 2);
  enum wrong none = TILES; /* device 0's part is valid */
  assert_fails(dist_run(strategy, run_alone, &none, NULL), DIST_ABORTED,
               "halo_exchange #1: logical device 1 returned early");
  assert_ok(dist_strategy_destroy(strategy));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_edge_on_every_grid),
      cmocka_unit_test(what_does_not_fit_is_refused_on_all),
      cmocka_unit_test(who_differs_in_its_line_is_named),
      cmocka_unit_test(a_missing_device_ends_it),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
