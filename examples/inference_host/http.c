// SPDX-License-Identifier: Apache-2.0
#include "http.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <inttypes.h>
#include <microhttpd.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "json.h"

enum {
  IDLE_SECONDS = 60,        // a connection without traffic is closed after this time
  MOST_CONNECTIONS = 4096,  // at most; fewer if the process may have fewer descriptors
  OTHER_FILES = 64,         // descriptors that are not for connections
  SPARE = 16,               // connections beyond the limit, until libmicrohttpd has closed others
  LINGER_SECONDS = 1,       // on shutdown, time for clients to close their idle connections
};

// The connection of a client. It is idle while the host has no request from it: before and between requests, and while a request
// arrives.
typedef struct client {
  struct client *older, *newer;  // among the idle ones
  int socket, idle, ended;
} client;

struct http {
  struct MHD_Daemon *daemon;
  const http_route *routes;
  size_t num_routes;
  void *user_data;
  atomic_int draining;
  pthread_mutex_t lock;  // guards the members below
  pthread_cond_t fewer;
  int64_t open;  // requests begun but not completely sent, plus unfinished http_answer() calls
  int64_t answered, gone;
  client idle;  // a ring: idle.newer is the connection without traffic for the longest time
  int64_t clients, most_clients;
  int ending;
};

typedef struct {
  exchange public;
  struct MHD_Connection *connection;
  client *client;
  int begun, answered;  // whether the host has received, has answered the request
  unsigned code;
  const char *type;
  char *answer;
  size_t answer_size;
} request;

static void change(http *server, int64_t *count, int64_t by) {
  pthread_mutex_lock(&server->lock);
  *count += by;
  pthread_cond_signal(&server->fewer);
  pthread_mutex_unlock(&server->lock);
}

// ---- Connections: the functions of a client require the lock ------------------------------------------------

static void set_busy(client *l) {
  if (!l->idle) return;
  l->older->newer = l->newer;
  l->newer->older = l->older;
  l->idle = 0;
}

// libmicrohttpd sees the end of the connection and closes it.
static void end_client(client *l, int how) {
  l->ended = 1;
  shutdown(l->socket, how);
}

// Also if the connection is idle already: it becomes the newest one.
static void set_idle(http *server, client *l) {
  set_busy(l);
  l->older = server->idle.older;
  l->newer = &server->idle;
  l->older->newer = l->newer->older = l;
  l->idle = 1;
  if (server->ending && !l->ended) end_client(l, SHUT_WR);
}

static void set_client(http *server, client *l, int idle) {
  if (l == NULL) return;
  pthread_mutex_lock(&server->lock);
  if (idle)
    set_idle(server, l);
  else
    set_busy(l);
  pthread_mutex_unlock(&server->lock);
}

// If there are too many connections, the one that has been idle for the longest time is ended.
static void connected(void *user_data, struct MHD_Connection *connection, void **memory,
                      enum MHD_ConnectionNotificationCode what) {
  http *server = user_data;
  client *l = *memory;
  pthread_mutex_lock(&server->lock);
  if (what == MHD_CONNECTION_NOTIFY_STARTED) {
    server->clients++;
    if ((l = *memory = calloc(1, sizeof *l)) != NULL) {
      l->socket = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
      set_idle(server, l);
    }
    client *oldest = server->idle.newer;
    while (oldest != &server->idle && oldest->ended) oldest = oldest->newer;
    if (server->clients > server->most_clients && oldest != &server->idle && oldest != l)
      end_client(oldest, SHUT_RDWR);
  } else {
    server->clients--;
    if (l != NULL) set_busy(l);
    free(l);
    *memory = NULL;
    pthread_cond_signal(&server->fewer);
  }
  pthread_mutex_unlock(&server->lock);
}

static int64_t most_connections(void) {
  struct rlimit files = {0, 0};
  if (getrlimit(RLIMIT_NOFILE, &files) || files.rlim_cur > MOST_CONNECTIONS + OTHER_FILES)
    return MOST_CONNECTIONS;
  return files.rlim_cur > 2 * OTHER_FILES ? (int64_t)files.rlim_cur - OTHER_FILES : OTHER_FILES;
}

// ---- Requests ------------------------------------------------------------------------------------------------

const char *http_parameter(exchange *e, const char *name) {
  struct MHD_Connection *connection = ((request *)e)->connection;
  const char *said = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
  return said != NULL ? said : MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, name);
}

dist_status http_number(exchange *e, const char *name, int64_t least, int64_t most, int64_t *out) {
  const char *said = http_parameter(e, name);
  if (said == NULL) return DIST_OK;
  char *rest = NULL, words[128];
  const long long number = strtoll(said, &rest, 10);
  if (rest != said && *rest == '\0' && number >= least && number <= most) {
    *out = number;
    return DIST_OK;
  }
  snprintf(words, sizeof words, "%s is not a whole number from %" PRId64 " to %" PRId64, name, least, most);
  return dist_fail(DIST_INVALID_ARGUMENT, words);
}

static unsigned code_of(dist_status status) {
  switch (status) {
    case DIST_OK: return 200;
    case DIST_INVALID_ARGUMENT:
    case DIST_OUT_OF_RANGE:
    case DIST_DATA_LOSS: return 400;
    case DIST_NOT_FOUND: return 404;
    case DIST_RESOURCE_EXHAUSTED:
    case DIST_UNAVAILABLE:
    case DIST_CANCELLED: return 503;
    case DIST_DEADLINE_EXCEEDED: return 504;
    default: return 500;
  }
}

void http_answer_json(exchange *e, dist_status status, char *body, size_t size) {
  if (status) {
    free(body);
    body = json_error(dist_last_error(), &size);
  }
  http_answer(e, code_of(status), "application/json", body, size);
}

// The request may be freed before this returns, but `open` keeps the server alive until then.
void http_answer(exchange *e, unsigned code, const char *type, char *body, size_t size) {
  request *r = (request *)e;
  http *server = r->public.server;
  r->code = body != NULL ? code : 500;
  r->type = type;
  r->answer = body;
  r->answer_size = body != NULL ? size : 0;
  r->answered = 1;
  MHD_resume_connection(r->connection);
  change(server, &server->open, -1);
}

static enum MHD_Result send_answer(request *r, const char *path) {
  const http *server = r->public.server;
  struct MHD_Response *response =
      MHD_create_response_from_buffer(r->answer_size, r->answer, MHD_RESPMEM_MUST_FREE);
  if (response == NULL) return MHD_NO;
  r->answer = NULL;
  enum MHD_Result done = MHD_add_response_header(response, "Content-Type", r->type);
  for (size_t i = 0; i < server->num_routes && done && r->code == MHD_HTTP_METHOD_NOT_ALLOWED; i++)
    if (strcmp(path, server->routes[i].path) == 0)
      done = MHD_add_response_header(response, "Allow", server->routes[i].method);
  if (done && server->draining) done = MHD_add_response_header(response, "Connection", "close");
  if (done) done = MHD_queue_response(r->connection, r->code, response);
  MHD_destroy_response(response);
  return done;
}

static void begin(request *r, const char *method, const char *path) {
  const http *server = r->public.server;
  const http_route *route = NULL;
  int known = 0;
  for (size_t i = 0; i < server->num_routes; i++) {
    if (strcmp(path, server->routes[i].path) != 0) continue;
    known = 1;
    if (strcmp(method, server->routes[i].method) == 0) route = &server->routes[i];
  }
  if (known && route == NULL) {
    size_t size = 0;
    char *body = json_error("the path does not have this method", &size);
    http_answer(&r->public, MHD_HTTP_METHOD_NOT_ALLOWED, "application/json", body, size);
    return;
  }
  dist_status status;
  if (route == NULL)
    status = dist_fail(DIST_NOT_FOUND, "there is no such path");
  else if (r->public.size > HTTP_MOST_BODY)
    status = dist_fail(DIST_INVALID_ARGUMENT, "the body is too long");
  else
    status = route->begin(&r->public);
  if (status) http_answer_json(&r->public, status, NULL, 0);
}

// libmicrohttpd calls this for the head of a request, each piece of its body, its end, and after it is
// resumed.
static enum MHD_Result come(void *user_data, struct MHD_Connection *connection, const char *path,
                            const char *method, const char *version, const char *data, size_t *size,
                            void **memory) {
  (void)version;
  http *server = user_data;
  request *r = *memory;
  if (r == NULL) {
    if ((r = *memory = calloc(1, sizeof *r)) == NULL) return MHD_NO;
    r->public.server = server;
    r->connection = connection;
    r->client = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
    set_client(server, r->client, 1);
    return MHD_YES;
  }
  exchange *e = &r->public;
  if (r->answered) return send_answer(r, path);
  if (*size > 0) {
    set_client(server, r->client, 1);
    if (e->size + *size <= HTTP_MOST_BODY)
      memcpy(e->body + e->size, data, *size);
    else
      e->size = HTTP_MOST_BODY;  // the next line makes the size exceed the limit; the body is discarded
    e->size += *size;
    *size = 0;
    return MHD_YES;
  }
  e->user_data = server->user_data;
  r->begun = 1;
  set_client(server, r->client, 0);
  change(server, &server->open, 2);
  MHD_suspend_connection(connection);  // suspend first: the host may answer at once
  begin(r, method, path);
  return MHD_YES;
}

static void over(void *user_data, struct MHD_Connection *connection, void **memory,
                 enum MHD_RequestTerminationCode how) {
  (void)connection;
  http *server = user_data;
  request *r = *memory;
  if (r == NULL) return;
  if (r->public.counts)
    change(server, how == MHD_REQUEST_TERMINATED_COMPLETED_OK ? &server->answered : &server->gone, 1);
  set_client(server, r->client, 1);
  if (r->begun) change(server, &server->open, -1);
  free(r->public.content);
  free(r->answer);
  free(r);
  *memory = NULL;
}

// ---- Start and shutdown --------------------------------------------------------------------------------------

static void release(http *server) {
  pthread_mutex_destroy(&server->lock);
  pthread_cond_destroy(&server->fewer);
  free(server);
}

http *http_start(uint16_t port, const http_route *routes, size_t n, void *user_data) {
  http *server = calloc(1, sizeof *server);
  if (server == NULL) return NULL;
  server->routes = routes;
  server->num_routes = n;
  server->user_data = user_data;
  server->idle.older = server->idle.newer = &server->idle;
  server->most_clients = most_connections();
  pthread_mutex_init(&server->lock, NULL);
  pthread_cond_init(&server->fewer, NULL);
  const struct sockaddr_in here = {
      .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  server->daemon = MHD_start_daemon(
      MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME, port, NULL, NULL, come, server,
      MHD_OPTION_SOCK_ADDR, &here, MHD_OPTION_NOTIFY_COMPLETED, over, server, MHD_OPTION_NOTIFY_CONNECTION,
      connected, server, MHD_OPTION_CONNECTION_LIMIT, (unsigned)server->most_clients + SPARE,
      MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE_SECONDS, MHD_OPTION_END);
  if (server->daemon != NULL) return server;
  release(server);
  return NULL;
}

uint16_t http_port(const http *server) {
  const union MHD_DaemonInfo *info = MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_BIND_PORT);
  return info != NULL ? info->port : 0;
}

// Closing the listening socket resets connections that have not been accepted, so accept them first. `draining` is set
// last, so that clients that close their connections because of it are refused when they connect again.
void http_drain(http *server) {
  struct sockaddr_storage address;
  const int listening = MHD_quiesce_daemon(server->daemon);
  if (listening >= 0) fcntl(listening, F_SETFL, O_NONBLOCK);
  for (int accepted = 0; listening >= 0 && accepted >= 0;) {
    socklen_t size = sizeof address;
    accepted = accept(listening, (struct sockaddr *)&address, &size);
    if (accepted >= 0) MHD_add_connection(server->daemon, accepted, (struct sockaddr *)&address, size);
  }
  if (listening >= 0) close(listening);
  server->draining = 1;
}

// Waits until *count is 0. Returns 0 if timeout_ns expires first.
static int await(http *server, const int64_t *count, int64_t timeout_ns) {
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  const int64_t nanoseconds = until.tv_nsec + timeout_ns;
  until.tv_sec += (time_t)(nanoseconds / 1000000000);
  until.tv_nsec = (long)(nanoseconds % 1000000000);
  int late = 0;
  pthread_mutex_lock(&server->lock);
  while (*count > 0 && !late) late = pthread_cond_timedwait(&server->fewer, &server->lock, &until);
  const int all = *count == 0;
  pthread_mutex_unlock(&server->lock);
  return all;
}

int http_await(http *server, int64_t timeout_ns) { return await(server, &server->open, timeout_ns); }

void http_counts(http *server, int64_t *out_answered, int64_t *out_gone) {
  pthread_mutex_lock(&server->lock);
  *out_answered = server->answered;
  *out_gone = server->gone;
  pthread_mutex_unlock(&server->lock);
}

// Clients may be sending on idle connections. Closing these would reset them, so the clients close them.
void http_stop(http *server, int64_t *out_answered, int64_t *out_gone) {
  pthread_mutex_lock(&server->lock);
  server->ending = 1;
  for (client *l = server->idle.newer; l != &server->idle; l = l->newer)
    if (!l->ended) end_client(l, SHUT_WR);
  pthread_mutex_unlock(&server->lock);
  await(server, &server->clients, LINGER_SECONDS * INT64_C(1000000000));
  MHD_stop_daemon(server->daemon);
  http_counts(server, out_answered, out_gone);
  release(server);
}
