/* SPDX-License-Identifier: Apache-2.0
 *
 * Adds up four numbers with each order of additions: on four replicas, on two, and after the numbers changed places.
 *
 *     cc sums.c $(pkg-config --cflags --libs dist) -o sums && ./sums
 */
#include <dist/dist.h>
#include <stdio.h>

typedef struct sum {
  double terms[4], result;
  dist_numerics numerics;
} sum;

/* Each replica contributes the same number of terms, in order. */
static dist_status add(dist_replica *replica, void *user_data) {
  sum *s = user_data;
  const size_t n = 4 / (size_t)dist_replica_num_replicas(replica);
  double result;
  dist_tensor terms[4];
  const dist_tensor out = {&result, DIST_F64, 0, NULL, NULL};
  for (size_t i = 0; i < n; i++) {
    terms[i] = out;
    terms[i].data = &s->terms[(size_t)dist_replica_id(replica) * n + i];
  }
  dist_collective_options options = DIST_COLLECTIVE_OPTIONS_INIT;
  options.contributions = n;
  options.numerics = s->numerics;
  const dist_status status = dist_all_reduce(replica, DIST_REDUCE_SUM, terms, &out, 1, &options, NULL);
  if (!status && dist_replica_id(replica) == 0) s->result = result;
  return status;
}

static dist_status add_on(int32_t num_replicas, sum *s) {
  dist_strategy_options options = DIST_STRATEGY_OPTIONS_INIT;
  options.num_replicas = num_replicas;
  dist_strategy *strategy = NULL;
  dist_status status = dist_strategy_create(&options, &strategy);
  if (!status) status = dist_run(strategy, add, s, NULL);
  const dist_status destroyed = dist_strategy_destroy(strategy);
  return status ? status : destroyed;
}

int main(void) {
  const char *names[] = {"ORDERED", "TREE", "REPRODUCIBLE"};
  const dist_numerics numerics[] = {DIST_NUMERICS_ORDERED, DIST_NUMERICS_TREE, DIST_NUMERICS_REPRODUCIBLE};
  dist_status status = DIST_OK;
  for (int i = 0; i < 3 && !status; i++) {
    sum four = {{1, 1e16, -1e16, 1}, 0, numerics[i]}, two = four,
        moved = {{1e16, -1e16, 1, 1}, 0, numerics[i]};
    status = add_on(4, &four);
    if (!status) status = add_on(2, &two);
    if (!status) status = add_on(4, &moved);
    if (!status) printf("%s: %g, %g, %g\n", names[i], four.result, two.result, moved.result);
  }
  if (status) fprintf(stderr, "sums: %s\n", dist_last_error());
  return status != DIST_OK;
}
