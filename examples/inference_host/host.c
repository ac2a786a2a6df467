// SPDX-License-Identifier: Apache-2.0
//
// A sentence encoder behind HTTP (see README.md), as an example of a server that embeds libdist. libdist
// decides when, on which replica and in which batch a request runs. It also enforces deadlines, priorities
// and the queue limit, and drains the queue on shutdown.
#include <dist/dist.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "http.h"
#include "json.h"
#include "metrics.h"
#include "model.h"
#include "options.h"

typedef struct {
  host_options options;
  dist_strategy *strategy;
  dist_batcher *batcher;
  dist_versions *versions;
  model *latest;  // the latest of `versions`
  http *server;
  atomic_int swapping, draining;
  _Atomic int64_t accepted;
} host;

typedef struct {
  exchange *exchange;
  text text;
  char *answer;
  size_t answer_size;
  int32_t ids[MODEL_MOST_TOKENS];
  float vector[MODEL_MOST_OUTPUTS];
} request;

// ---- Instances
// -----------------------------------------------------------------------------------------------

static dist_status warm_up(dist_replica *replica, void *user_data) {
  host *h = user_data;
  void *latest = NULL;
  const dist_status status = dist_replica_version(replica, h->versions, &latest, NULL);
  return status ? status
                : model_warm_up(latest, dist_instance_state(replica), (size_t)h->options.batcher.max_items);
}

static dist_status step(dist_replica *replica, dist_batch *batch, void *user_data) {
  host *h = user_data;
  const size_t n = dist_batch_size(batch);
  text *texts[OPTIONS_MOST_ITEMS];
  void *latest = NULL;
  int64_t version = 0;
  dist_status status = dist_replica_version(replica, h->versions, &latest, &version);
  for (size_t i = 0; i < n; i++) texts[i] = &((request *)dist_batch_user_data(batch, i))->text;
  if (!status) status = model_encode(latest, dist_instance_state(replica), texts, n);
  for (size_t i = 0; i < n && !status; i++) {
    request *r = dist_batch_user_data(batch, i);
    r->answer = json_embedding(version, r->vector, model_outputs(latest), &r->answer_size);
    if (texts[i]->status) dist_batch_end(batch, i, dist_fail(texts[i]->status, "the model has no such ids"));
  }
  return status;
}

// ---- Requests ------------------------------------------------------------------------------------------------
static void encoded(dist_request *work, void *user_data) {
  (void)user_data;
  request *r = dist_request_user_data(work);
  http_answer_json(r->exchange, dist_request_wait(work, DIST_NO_TIMEOUT), r->answer, r->answer_size);
}

static dist_status encode(exchange *e) {
  host *h = e->user_data;
  dist_item_options options = DIST_ITEM_OPTIONS_INIT;
  int64_t deadline_ms = 0, priority = 0;
  request *r = e->content = calloc(1, sizeof *r);
  if (r == NULL) return dist_fail(DIST_RESOURCE_EXHAUSTED, "no memory for a request");
  r->exchange = e;
  r->text = (text){.ids = r->ids, .vector = r->vector};
  dist_status status = json_ids(e->body, e->size, r->ids, MODEL_MOST_TOKENS, &r->text.tokens);
  if (!status) status = http_number(e, "deadline-ms", 1, 1000000000, &deadline_ms);
  if (!status) status = http_number(e, "priority", DIST_PRIORITY_MIN, DIST_PRIORITY_MAX, &priority);
  if (status) return status;
  options.timeout_ns = deadline_ms * 1000000;
  options.priority = (int32_t)priority;
  options.length = r->text.tokens;
  options.done = encoded;
  e->counts = 1;  // set it first: submitting may answer the request at once
  h->accepted++;
  status = dist_batcher_submit(h->batcher, r, &options, NULL);
  if (status) e->counts = 0, h->accepted--;
  return status;
}

// Runs on a separate thread, because it waits until no request uses the old version any more.
static void *run_swap(void *user_data) {
  exchange *e = user_data;
  host *h = e->user_data;
  char path[4096];
  model *loaded = NULL;
  int64_t version = 0;
  (void)setpriority(PRIO_PROCESS, 0, 19);  // prefer requests; on Linux, applies to this thread only
  dist_status status = json_path(e->body, e->size, h->options.models, path, sizeof path);
  if (!status) status = model_load(h->strategy, path, h->latest, &loaded);
  if (!status) status = dist_versions_publish(h->versions, loaded, model_release, NULL, &version);
  if (status) model_release(loaded, NULL);
  if (!status) h->latest = loaded;
  if (!status) status = dist_versions_await(h->versions, version, -1);
  h->swapping = 0;
  size_t size = 0;
  char *answer = json_version(version, &size);
  http_answer_json(e, status, answer, size);
  return NULL;
}

static dist_status swap(exchange *e) {
  host *h = e->user_data;
  pthread_t thread;
  if (atomic_exchange(&h->swapping, 1)) return dist_fail(DIST_UNAVAILABLE, "another swap is under way");
  if (pthread_create(&thread, NULL, run_swap, e) == 0) return pthread_detach(thread), DIST_OK;
  h->swapping = 0;
  return dist_fail(DIST_RESOURCE_EXHAUSTED, "no thread for a swap");
}

static dist_status tell_health(exchange *e) {
  host *h = e->user_data;
  json_health_of now = {h->draining, dist_versions_latest(h->versions), 0, 0, h->accepted, 0, 0};
  size_t size = 0;
  dist_batcher_count(h->batcher, &now.waiting, &now.active);
  http_counts(e->server, &now.answered, &now.gone);
  char *body = json_health(&now, &size);
  http_answer(e, h->draining ? 503 : 200, "application/json", body, size);
  return DIST_OK;
}

static dist_status tell_metrics(exchange *e) {
  size_t size = 0;
  char *body = metrics_text(((host *)e->user_data)->strategy, &size);
  http_answer(e, 200, "text/plain; version=0.0.4", body, size);
  return DIST_OK;
}

static const http_route routes[] = {{"POST", "/encode", encode},
                                    {"POST", "/swap", swap},
                                    {"GET", "/health", tell_health},
                                    {"GET", "/metrics", tell_metrics}};

// ---- Start and shutdown
// --------------------------------------------------------------------------------------

static dist_status start(host *h) {
  h->options.instances.warm_up = warm_up;
  h->options.instances.user_data = h;
  dist_status status = dist_strategy_create(&h->options.strategy, &h->strategy);
  if (!status) status = dist_versions_create(NULL, &h->versions);
  if (!status) status = model_load(h->strategy, h->options.path, NULL, &h->latest);
  if (!status) status = dist_versions_publish(h->versions, h->latest, model_release, NULL, NULL);
  if (status) model_release(h->latest, NULL);
  if (!status) status = dist_instances_open(h->strategy, &h->options.instances);
  if (!status) status = dist_batcher_create(h->strategy, step, h, &h->options.batcher, &h->batcher);
  if (!status &&
      (h->server = http_start(h->options.port, routes, sizeof routes / sizeof routes[0], h)) == NULL)
    status = dist_fail(DIST_UNAVAILABLE, "the port is not free");
  return status;
}

// Answers all accepted requests and accepts no new ones.
static dist_status stop(host *h) {
  int64_t answered = 0, gone = 0;
  h->draining = 1;
  http_drain(h->server);
  dist_status status = dist_instances_close(h->strategy, h->options.drain_ns);
  http_await(h->server, h->options.drain_ns);
  http_stop(h->server, &answered, &gone);
  printf("accepted %" PRId64 ", answered %" PRId64 ", gone %" PRId64 "\n", h->accepted, answered, gone);
  if (!status && h->accepted != answered + gone)
    status = dist_fail(DIST_DEADLINE_EXCEEDED, "a client does not take its answer");
  return status;
}

int main(int argc, char **argv) {
  static host h;
  int signal = 0;
  const sigset_t ends = options_block_signals();
  h.options = options_parse(argc, argv);
  dist_status status = start(&h);
  if (!status) {
    printf("http://127.0.0.1:%d\n", (int)http_port(h.server));
    fflush(stdout);
    sigwait(&ends, &signal);
    status = stop(&h);
  }
  if (status) fprintf(stderr, "inference_host: %s\n", dist_last_error());
  if (dist_batcher_destroy(h.batcher) || dist_strategy_destroy(h.strategy)) status = DIST_INTERNAL;
  dist_versions_destroy(h.versions);
  return status ? EXIT_FAILURE : EXIT_SUCCESS;
}
