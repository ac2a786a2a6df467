/* SPDX-License-Identifier: Apache-2.0 */
/* A link module that moves the data of workers over plain TCP sockets. One thread of each worker waits for events of all
 * its connections. When a socket becomes readable or writable, the thread calls `ready`, and libdist then calls tcp_read()
 * and tcp_write() as long as they can move more. Therefore edge-triggered events are sufficient.
 *
 *     cc -shared -fPIC -o libdist-tcp.so tcp.c $(pkg-config --cflags dist) -pthread
 *     DIST_MODULE_FOLDER=... DIST_TRANSPORT=tcp dist-launch --workers 2 ./program
 */
#define _POSIX_C_SOURCE 200809L
#include <arpa/inet.h>
#include <dist/experimental/links.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

typedef struct connection connection;

typedef struct module {
  const dist_link_callbacks *callbacks;
  unsigned lease_ms;
  int epoll;
  int wake; /* an eventfd: there is work in `posted` */
  pthread_t thread;
  pthread_mutex_t mutex; /* for everything below, and the flags of connections */
  pthread_cond_t changed;
  connection *posted;
  bool stop;
} module;

struct connection {
  module *owner;
  dist_link *link;
  bool initiates;
  int listener;
  atomic_int socket; /* -1 until there is one; closed by destroy() */
  struct sockaddr_storage peer;
  bool posted, connects, cut, begun, ended;
  connection *next;
};

static dist_status failure(char *error, size_t size, const char *what) {
  snprintf(error, size, "%s: %s", what, strerror(errno));
  return DIST_UNAVAILABLE;
}

/* ---- The thread ----------------------------------------------------------------------------------- */

static void watch(connection *self, int descriptor, uint32_t events) {
  struct epoll_event event = {.events = events, .data.ptr = self};
  epoll_ctl(self->owner->epoll, EPOLL_CTL_ADD, descriptor, &event);
}

static void prepare(connection *self, int descriptor) {
  int on = 1;
  setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  setsockopt(descriptor, IPPROTO_TCP, TCP_USER_TIMEOUT, &self->owner->lease_ms, sizeof self->owner->lease_ms);
  self->socket = descriptor;
  watch(self, descriptor, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET);
}

static void happened(connection *self) {
  if (self->socket < 0 && self->listener >= 0) {
    int accepted = accept(self->listener, NULL, NULL);
    if (accepted < 0) return;
    fcntl(accepted, F_SETFL, O_NONBLOCK);
    fcntl(accepted, F_SETFD, FD_CLOEXEC);
    close(self->listener);
    self->listener = -1;
    prepare(self, accepted);
  }
  self->owner->callbacks->ready(self->link);
}

/* Connects, or reports the end. Called after all events of one epoll_wait() have been handled: none of them is about a
 * connection that destroy() frees afterwards. */
static void work(connection *self, bool connects, bool cut) {
  if (connects && !cut && !self->begun) {
    self->begun = true;
    if (!self->initiates) {
      watch(self, self->listener, EPOLLIN);
      return;
    }
    socklen_t size =
        self->peer.ss_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
    int made = socket(self->peer.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (made >= 0 && (connect(made, (struct sockaddr *)&self->peer, size) == 0 || errno == EINPROGRESS)) {
      prepare(self, made);
      return;
    }
    if (made >= 0) close(made);
    cut = true;
  }
  if (!connects || !cut || self->ended) return;
  if (self->socket >= 0) epoll_ctl(self->owner->epoll, EPOLL_CTL_DEL, self->socket, NULL);
  if (self->listener >= 0) epoll_ctl(self->owner->epoll, EPOLL_CTL_DEL, self->listener, NULL);
  self->owner->callbacks->ended(self->link, NULL);
  pthread_mutex_lock(&self->owner->mutex);
  self->ended = true;
  pthread_cond_broadcast(&self->owner->changed);
  pthread_mutex_unlock(&self->owner->mutex);
}

static void *serve(void *argument) {
  module *self = argument;
  for (;;) {
    struct epoll_event events[64];
    int n = epoll_wait(self->epoll, events, 64, -1);
    bool woken = false;
    for (int i = 0; i < n; ++i) {
      if (events[i].data.ptr == NULL) {
        woken = true;
      } else {
        happened(events[i].data.ptr);
      }
    }
    if (!woken) continue;
    uint64_t count;
    if (read(self->wake, &count, sizeof count) < 0) continue;
    pthread_mutex_lock(&self->mutex);
    while (self->posted != NULL) {
      connection *each = self->posted;
      self->posted = each->next;
      bool connects = each->connects, cut = each->cut;
      pthread_mutex_unlock(&self->mutex);
      work(each, connects, cut);
      pthread_mutex_lock(&self->mutex);
      each->posted = false;
      if (each->connects != connects || each->cut != cut) {
        each->posted = true;
        each->next = self->posted;
        self->posted = each;
      }
      pthread_cond_broadcast(&self->changed);
    }
    bool stop = self->stop;
    pthread_mutex_unlock(&self->mutex);
    if (stop) return NULL;
  }
}

static void wake(module *self) {
  uint64_t one = 1;
  if (write(self->wake, &one, sizeof one) < 0) return; /* it is awake already */
}

/* The module's mutex must be held. */
static void post(connection *self) {
  if (!self->posted) {
    self->posted = true;
    self->next = self->owner->posted;
    self->owner->posted = self;
  }
  wake(self->owner);
}

/* ---- The module's functions ----------------------------------------------------------------------- */

static dist_status tcp_open(const dist_link_module_options *options, void **out, char *error, size_t size) {
  module *self = calloc(1, sizeof *self);
  if (self == NULL) return failure(error, size, "calloc");
  self->callbacks = options->callbacks;
  self->lease_ms = (unsigned)(options->lease_ns / 1000000);
  self->epoll = epoll_create1(EPOLL_CLOEXEC);
  self->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  pthread_mutex_init(&self->mutex, NULL);
  pthread_cond_init(&self->changed, NULL);
  struct epoll_event event = {.events = EPOLLIN};
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int failed = epoll_ctl(self->epoll, EPOLL_CTL_ADD, self->wake, &event) != 0
                   ? errno
                   : pthread_create(&self->thread, NULL, serve, self);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (failed == 0) {
    *out = self;
    return DIST_OK;
  }
  close(self->epoll);
  close(self->wake);
  free(self);
  errno = failed;
  return failure(error, size, "the thread for connections");
}

static void tcp_close(void *module_) {
  module *self = module_;
  pthread_mutex_lock(&self->mutex);
  self->stop = true;
  pthread_mutex_unlock(&self->mutex);
  wake(self);
  pthread_join(self->thread, NULL);
  close(self->epoll);
  close(self->wake);
  free(self);
}

/* Only the end that accepts listens and has an address. */
static dist_status tcp_listen(void *module_, const dist_link_options *options, void **out, void *address,
                              size_t *address_size, char *error, size_t size) {
  struct sockaddr_storage own = {0};
  socklen_t length =
      strchr(options->host, ':') != NULL ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
  own.ss_family = length == sizeof(struct sockaddr_in6) ? AF_INET6 : AF_INET;
  void *host = own.ss_family == AF_INET6 ? (void *)&((struct sockaddr_in6 *)&own)->sin6_addr
                                         : (void *)&((struct sockaddr_in *)&own)->sin_addr;
  connection *self = calloc(1, sizeof *self);
  if (self == NULL) return failure(error, size, "calloc");
  *self = (connection){
      .owner = module_, .link = options->link, .initiates = options->initiates != 0, .listener = -1};
  self->socket = -1;
  *address_size = 0;
  if (!self->initiates) {
    self->listener = socket(own.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (self->listener < 0 || inet_pton(own.ss_family, options->host, host) != 1 ||
        bind(self->listener, (struct sockaddr *)&own, length) != 0 || listen(self->listener, 1) != 0 ||
        getsockname(self->listener, (struct sockaddr *)&own, &length) != 0) {
      dist_status status = failure(error, size, options->host);
      if (self->listener >= 0) close(self->listener);
      free(self);
      return status;
    }
    *address_size = sizeof own;
    memcpy(address, &own, sizeof own);
  }
  *out = self;
  return DIST_OK;
}

static void tcp_connect(void *connection_, const void *address, size_t address_size) {
  connection *self = connection_;
  pthread_mutex_lock(&self->owner->mutex);
  if (address_size == sizeof self->peer) memcpy(&self->peer, address, address_size);
  self->connects = true;
  post(self);
  pthread_mutex_unlock(&self->owner->mutex);
}

/* Converts the result of sendmsg() or recvmsg() to the result of `write` or `read`. If `zero_is_end` is true, 0 bytes mean
 * that the peer has closed the connection. */
static ptrdiff_t result(ssize_t moved, bool zero_is_end) {
  if (moved > 0) return moved;
  if (moved == 0) return zero_is_end ? -1 : 0;
  return errno == EAGAIN ? 0 : -1;
}

static size_t fill(struct iovec *to, const dist_link_block *blocks, size_t n) {
  for (size_t i = 0; i < n; ++i) to[i] = (struct iovec){blocks[i].data, blocks[i].size_bytes};
  return n;
}

static ptrdiff_t tcp_write(void *connection_, const dist_link_block *blocks, size_t n) {
  int descriptor = ((connection *)connection_)->socket;
  struct iovec parts[DIST_LINK_MAX_BLOCKS];
  struct msghdr message = {.msg_iov = parts, .msg_iovlen = fill(parts, blocks, n)};
  return descriptor < 0 ? 0 : result(sendmsg(descriptor, &message, MSG_NOSIGNAL), false);
}

static ptrdiff_t tcp_read(void *connection_, const dist_link_block *blocks, size_t n) {
  int descriptor = ((connection *)connection_)->socket;
  struct iovec parts[DIST_LINK_MAX_BLOCKS];
  struct msghdr message = {.msg_iov = parts, .msg_iovlen = fill(parts, blocks, n)};
  return descriptor < 0 ? 0 : result(recvmsg(descriptor, &message, 0), true);
}

static void tcp_cut(void *connection_) {
  connection *self = connection_;
  pthread_mutex_lock(&self->owner->mutex);
  self->cut = true;
  post(self);
  pthread_mutex_unlock(&self->owner->mutex);
}

static void tcp_destroy(void *connection_) {
  connection *self = connection_;
  pthread_mutex_lock(&self->owner->mutex);
  self->cut = true;
  post(self);
  while (self->posted || (self->connects && !self->ended))
    pthread_cond_wait(&self->owner->changed, &self->owner->mutex);
  pthread_mutex_unlock(&self->owner->mutex);
  if (self->socket >= 0) close(self->socket);
  if (self->listener >= 0) close(self->listener);
  free(self);
}

const dist_link_functions *dist_link_module(void) {
  static const dist_link_functions table = {sizeof table, 0,           "tcp",       "plain TCP", tcp_open,
                                            tcp_close,    tcp_listen,  tcp_connect, tcp_write,   tcp_read,
                                            tcp_cut,      tcp_destroy, NULL};
  return &table;
}
