// SPDX-License-Identifier: Apache-2.0
//
// The server that the benchmark compares the host with: plain threads take requests from a bounded queue and
// call a single ONNX Runtime session. It shares the host's HTTP and JSON code and uses libdist only for error
// messages.
//
//     onnx_peer [-p PORT] [-r CALLERS] [-j THREADS] [-q REQUESTS] MODEL
//
// THREADS is the number of threads of the session, including the caller. REQUESTS is the maximum number of
// waiting requests; further ones receive a 503.
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "http.h"
#include "json.h"
#include "model_onnx.h"
#include "options.h"

enum { MOST_CALLERS = 256 };

typedef struct request {
  struct request *next;
  exchange *exchange;
  text text;
  int32_t ids[MODEL_MOST_TOKENS];
  float vector[MODEL_MOST_OUTPUTS];
} request;

typedef struct {
  model *model;
  http *server;
  pthread_t callers[MOST_CALLERS];
  pthread_mutex_t lock;  // guards the members below
  pthread_cond_t more;
  request *first, *last;
  long waiting;
  int ends;
} peer;

// Parses the value of an option: 0 to `most`.
static long number(const char *text, long most) {
  char *rest = NULL;
  const long value = strtol(text, &rest, 10);
  if (rest != text && *rest == '\0' && value >= 0 && value <= most) return value;
  fprintf(stderr, "onnx_peer: %s is not a number from 0 to %ld\n", text, most);
  exit(2);
}

static long port, num_callers = 1, threads = 1, most_waiting = 256;

static const char *parse(int argc, char **argv) {
  for (int option; (option = getopt(argc, argv, "p:r:j:q:")) != -1;) {
    switch (option) {
      case 'p': port = number(optarg, 65535); break;
      case 'r': num_callers = number(optarg, MOST_CALLERS); break;
      case 'j': threads = number(optarg, 1024); break;
      case 'q': most_waiting = number(optarg, 1000000); break;
      default: optind = argc;
    }
  }
  if (argc - optind == 1) return argv[optind];
  fprintf(stderr, "usage: onnx_peer [-p PORT] [-r CALLERS] [-j THREADS] [-q REQUESTS] MODEL\n");
  exit(2);
}

// ---- The queue -----------------------------------------------------------------------------------------------

static dist_status put(peer *p, request *r) {
  pthread_mutex_lock(&p->lock);
  const int refused =
      p->ends || p->waiting == most_waiting;  // the server is shutting down, or the queue is full
  if (!refused) {
    if (p->waiting++ == 0)
      p->first = r;
    else
      p->last->next = r;
    p->last = r;
    pthread_cond_signal(&p->more);
  }
  pthread_mutex_unlock(&p->lock);
  return refused ? dist_fail(DIST_RESOURCE_EXHAUSTED, "the queue is full, or ends") : DIST_OK;
}

// Returns NULL when the queue is empty and shutting down.
static request *take(peer *p) {
  pthread_mutex_lock(&p->lock);
  while (p->waiting == 0 && !p->ends) pthread_cond_wait(&p->more, &p->lock);
  request *r = p->waiting > 0 ? p->first : NULL;
  if (r != NULL) {
    p->first = r->next;
    p->waiting--;
  }
  pthread_mutex_unlock(&p->lock);
  return r;
}

static void *call(void *user_data) {
  peer *p = user_data;
  text *texts[1];
  for (request *r; (r = take(p)) != NULL;) {
    size_t size = 0;
    texts[0] = &r->text;
    dist_status status = model_encode(p->model, NULL, texts, 1);
    if (!status) status = r->text.status;
    char *answer = status ? NULL : json_embedding(1, r->vector, model_outputs(p->model), &size);
    http_answer_json(r->exchange, status, answer, size);
  }
  return NULL;
}

static dist_status encode(exchange *e) {
  request *r = e->content = calloc(1, sizeof *r);
  if (r == NULL) return dist_fail(DIST_RESOURCE_EXHAUSTED, "no memory for a request");
  r->exchange = e;
  r->text = (text){.ids = r->ids, .vector = r->vector};
  const dist_status status = json_ids(e->body, e->size, r->ids, MODEL_MOST_TOKENS, &r->text.tokens);
  return status ? status : put(e->user_data, r);
}

// ---- Start and shutdown
// --------------------------------------------------------------------------------------

static const http_route routes[] = {{"POST", "/encode", encode}};

static dist_status start(peer *p, const char *path, long *started) {
  pthread_mutex_init(&p->lock, NULL);
  pthread_cond_init(&p->more, NULL);
  dist_status status = model_load_threads(path, (int)threads, &p->model);
  if (!status) status = model_warm_up(p->model, NULL, 1);
  for (; *started < num_callers && !status; ++*started)
    if (pthread_create(&p->callers[*started], NULL, call, p) != 0)
      return dist_fail(DIST_RESOURCE_EXHAUSTED, "no thread for a caller");
  if (!status && (p->server = http_start((uint16_t)port, routes, 1, p)) == NULL)
    status = dist_fail(DIST_UNAVAILABLE, "the port is not free");
  return status;
}

int main(int argc, char **argv) {
  static peer p;
  int signal = 0;
  long started = 0;
  int64_t answered = 0, gone = 0;
  const sigset_t ends = options_block_signals();
  const dist_status status = start(&p, parse(argc, argv), &started);
  if (!status) {
    printf("http://127.0.0.1:%d\n", (int)http_port(p.server));
    fflush(stdout);
    sigwait(&ends, &signal);
    http_drain(p.server);
  } else {
    fprintf(stderr, "onnx_peer: %s\n", dist_last_error());
  }
  pthread_mutex_lock(&p.lock);
  p.ends = 1;
  pthread_cond_broadcast(&p.more);
  pthread_mutex_unlock(&p.lock);
  for (long i = 0; i < started; i++) pthread_join(p.callers[i], NULL);
  if (p.server != NULL) http_stop(p.server, &answered, &gone);
  model_release(p.model, NULL);
  return status ? EXIT_FAILURE : EXIT_SUCCESS;
}
