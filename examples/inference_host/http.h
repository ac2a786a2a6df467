// SPDX-License-Identifier: Apache-2.0
//
// HTTP on loopback by libmicrohttpd: one thread has all connections, and none of them waits there. A request is
// suspended before the host gets it, and resumed when the host answers, from any thread.
#ifndef EXAMPLES_INFERENCE_HOST_HTTP_H
#define EXAMPLES_INFERENCE_HOST_HTTP_H

#include <dist/dist.h>
#include <stddef.h>
#include <stdint.h>

enum { HTTP_MOST_BODY = 16384 };

typedef struct http http;

// A request, until it is answered.
typedef struct exchange {
  http *server;
  void *user_data;  // http_start()'s
  char body[HTTP_MOST_BODY];
  size_t size;
  int counts;     // set by the host: in http_counts
  void *content;  // the host's; freed by free() when the request is over
} exchange;

// Which requests the host gets. `begin` is called on the thread of the connections; with DIST_OK it has seen to
// http_answer(), there or later, and anything else is the answer.
typedef struct {
  const char *method, *path;
  dist_status (*begin)(exchange *e);
} http_route;

// port 0: any that is free. `routes` are used until http_stop(). NULL: the system has none of it.
http *http_start(uint16_t port, const http_route *routes, size_t n, void *user_data);
uint16_t http_port(const http *server);

// A header of the request, or else a parameter of its query; NULL: neither. While http_route.begin has it alone.
const char *http_parameter(exchange *e, const char *name);
// That as a number; `out` stays where there is neither.
dist_status http_number(exchange *e, const char *name, int64_t least, int64_t most, int64_t *out);

// Once a request, from any thread. `body` is freed by free(); NULL: no memory, which the client is told.
void http_answer(exchange *e, unsigned code, const char *type, char *body, size_t size);
// 200 and that JSON; or, where `status` is not DIST_OK, the code that says so, with dist_last_error(); `body` is freed.
void http_answer_json(exchange *e, dist_status status, char *body, size_t size);

// No new connections; who has one is told that it ends.
void http_drain(http *server);
// Until all requests have been answered, and the answers sent. 0: they have not within timeout_ns.
int http_await(http *server, int64_t timeout_ns);
// Of the requests that count: answers that went out whole, and those whose client had gone.
void http_counts(http *server, int64_t *out_answered, int64_t *out_gone);

// Closes all connections, and counts a last time. The host answers no more.
void http_stop(http *server, int64_t *out_answered, int64_t *out_gone);

#endif
