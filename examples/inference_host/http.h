// SPDX-License-Identifier: Apache-2.0
//
// An HTTP server on the loopback interface, based on libmicrohttpd. A single thread serves all connections
// without blocking. A request is suspended before the host receives it and resumed when the host answers,
// from any thread. If a connection arrives at the limit of connections, the one that has been idle for the longest
// time is closed.
#ifndef EXAMPLES_INFERENCE_HOST_HTTP_H
#define EXAMPLES_INFERENCE_HOST_HTTP_H

#include <dist/dist.h>
#include <stddef.h>
#include <stdint.h>

enum { HTTP_MOST_BODY = 16384 };

typedef struct http http;

// A request. Valid until it has been answered.
typedef struct exchange {
  http *server;
  void *user_data;  // the one passed to http_start()
  char body[HTTP_MOST_BODY];
  size_t size;
  int counts;     // set by the host: include this request in http_counts()
  void *content;  // owned by the host; released with free() after the request
} exchange;

// A method and path that the host handles. The connection thread calls `begin`. If it returns DIST_OK, the
// host must call http_answer(), from `begin` or later. Any other status is sent as the answer.
typedef struct {
  const char *method, *path;
  dist_status (*begin)(exchange *e);
} http_route;

// Port 0 selects a free port. `routes` must stay valid until http_stop(). Returns NULL on failure.
http *http_start(uint16_t port, const http_route *routes, size_t n, void *user_data);
uint16_t http_port(const http *server);

// Returns a request header or else a query parameter; NULL if neither exists. Call it only from
// http_route.begin.
const char *http_parameter(exchange *e, const char *name);
// Parses http_parameter() as a number from `least` to `most`. If the parameter is absent, *out is unchanged.
dist_status http_number(exchange *e, const char *name, int64_t least, int64_t most, int64_t *out);

// Answers the request; call it exactly once, from any thread. `body` is released with free(). If it is NULL,
// the client receives a 500.
void http_answer(exchange *e, unsigned code, const char *type, char *body, size_t size);
// Answers 200 with a JSON body or, if `status` is not DIST_OK, the matching code with dist_last_error().
// Frees `body`.
void http_answer_json(exchange *e, dist_status status, char *body, size_t size);

// Closes the listening socket: new connections are refused. Answers on existing connections tell the client that
// the connection will be closed.
void http_drain(http *server);
// Waits until all requests have been answered and the answers sent. Returns 0 if timeout_ns expires first.
int http_await(http *server, int64_t timeout_ns);
// For requests with `counts`: the number of answers sent completely, and of clients that disconnected before
// that.
void http_counts(http *server, int64_t *out_answered, int64_t *out_gone);

// Gives clients up to a second to close their idle connections, closes all connections and returns the final
// counts. The host must not answer afterwards.
void http_stop(http *server, int64_t *out_answered, int64_t *out_gone);

#endif
