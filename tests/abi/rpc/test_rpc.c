/* SPDX-License-Identifier: Apache-2.0
 *
 * Methods of other processes: servers and clients in this process, over loopback. test_rpc_processes.c uses
 * separate processes.
 */
#include <dist/experimental/rpc.h>
#include "../common.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

/* ---- Methods ---- */

static atomic_int released;
static void count_release(void *user_data) {
  (void)user_data;
  atomic_fetch_add(&released, 1);
}

static dist_status echo(const dist_rpc_context *context, dist_value *arguments, dist_value **out_result,
                        void *user_data) {
  (void)user_data;
  if (strcmp(context->method, "echo") != 0) return dist_fail(DIST_INTERNAL, context->method);
  *out_result = dist_value_retain(arguments);
  return DIST_OK;
}

/* Returns the sum of a tuple's two tensors. */
static dist_status add(const dist_rpc_context *context, dist_value *arguments, dist_value **out_result,
                       void *user_data) {
  (void)context, (void)user_data;
  dist_tensor a, b;
  if (dist_value_size(arguments) != 2) return dist_fail(DIST_INVALID_ARGUMENT, "add takes two tensors");
  dist_status status = dist_value_tensor(dist_value_item(arguments, 0), &a);
  if (status == DIST_OK) status = dist_value_tensor(dist_value_item(arguments, 1), &b);
  if (status != DIST_OK) return status;
  float sum[64];
  for (int64_t i = 0; i < a.shape[0]; ++i) sum[i] = ((float *)a.data)[i] + ((float *)b.data)[i];
  const dist_tensor out = {sum, DIST_F32, 1, a.shape, NULL};
  return dist_value_create_tensor(dist_get_strategy(), &out, out_result);
}

static dist_status fails(const dist_rpc_context *context, dist_value *arguments, dist_value **out_result,
                         void *user_data) {
  (void)context, (void)out_result;
  if (arguments != NULL && dist_value_kind_of(arguments) == DIST_VALUE_TEXT)
    return dist_fail(DIST_NOT_FOUND, dist_value_text(arguments));
  return *(_Atomic dist_status *)user_data;
}

/* Waits until it is released, or until its caller no longer waits. */
typedef struct gate {
  atomic_int inside, open, cancelled;
} gate;
static dist_status wait_at(const dist_rpc_context *context, dist_value *arguments, dist_value **out_result,
                           void *user_data) {
  (void)arguments, (void)out_result;
  gate *at = user_data;
  atomic_fetch_add(&at->inside, 1);
  while (!atomic_load(&at->open)) {
    if (dist_cancel_signalled(context->cancel)) {
      atomic_fetch_add(&at->cancelled, 1);
      return DIST_CANCELLED;
    }
    usleep(200);
  }
  return DIST_OK;
}

static dist_rpc_server *the_server;
static dist_status end_own_server(const dist_rpc_context *context, dist_value *arguments,
                                  dist_value **out_result, void *user_data) {
  (void)context, (void)arguments, (void)out_result, (void)user_data;
  return dist_rpc_server_destroy(the_server);
}

/* ---- A server and a client ---- */

typedef struct pair {
  dist_rpc_server *server;
  dist_rpc_client *client;
  gate at;
  _Atomic dist_status status;
  char address[64];
} pair;

static void register_all(pair *p) {
  p->status = DIST_DATA_LOSS;
  assert_ok(dist_rpc_server_register(p->server, "echo", echo, NULL, count_release));
  assert_ok(dist_rpc_server_register(p->server, "add", add, NULL, NULL));
  assert_ok(dist_rpc_server_register(p->server, "fails", fails, &p->status, NULL));
  assert_ok(dist_rpc_server_register(p->server, "wait", wait_at, &p->at, NULL));
  assert_ok(dist_rpc_server_register(p->server, "end", end_own_server, NULL, NULL));
}

static void begin_with(pair *p, const dist_rpc_server_options *options) {
  memset(p, 0, sizeof *p);
  assert_ok(dist_rpc_server_create("grpc", "127.0.0.1:0", options, &p->server));
  register_all(p);
  assert_ok(dist_rpc_server_start(p->server));
  the_server = p->server;
  snprintf(p->address, sizeof p->address, "%s", dist_rpc_server_address(p->server));
  assert_ok(dist_rpc_client_create(NULL, p->address, NULL, &p->client));
}
static void begin(pair *p) { begin_with(p, NULL); }

static void end(pair *p) {
  dist_rpc_client_destroy(p->client);
  assert_ok(dist_rpc_server_destroy(p->server));
}

static void await(atomic_int *number, int wanted) {
  while (atomic_load(number) < wanted) usleep(200);
}

static dist_value *text(const char *words) {
  dist_value *value = NULL;
  assert_ok(dist_value_create_text(dist_get_strategy(), words, &value));
  return value;
}

static dist_value *floats(const float *data, int64_t n, int64_t stride) {
  dist_value *value = NULL;
  const dist_tensor tensor = {(void *)data, DIST_F32, 1, &n, &stride};
  assert_ok(dist_value_wrap_tensor(dist_get_strategy(), &tensor, NULL, NULL, &value));
  return value;
}

/* ---- Calls ---- */

static void a_method_answers(void **state) {
  (void)state;
  pair p;
  begin(&p);
  const float numbers[] = {1, 2, 3, 4, 5, 6};
  dist_value *items[] = {floats(numbers, 3, 2), floats(numbers + 5, 3, -1)};
  dist_value *arguments = NULL, *sum = NULL;
  assert_ok(dist_value_create_tuple(dist_get_strategy(), items, 2, &arguments));
  assert_ok(dist_rpc_call(p.client, "add", arguments, NULL, &sum));
  dist_tensor got;
  assert_ok(dist_value_tensor(sum, &got));
  assert_int_equal(got.ndim, 1);
  assert_int_equal(got.shape[0], 3);
  for (int i = 0; i < 3; ++i) assert_true(((float *)got.data)[i] == numbers[2 * i] + numbers[5 - i]);
  dist_value_release(sum);
  dist_value_release(arguments);
  for (int i = 0; i < 2; ++i) dist_value_release(items[i]);
  const int before = atomic_load(&released);
  end(&p);
  assert_int_equal(atomic_load(&released), before + 1);
}

static void assert_same(const dist_value *a, const dist_value *b) {
  assert_int_equal(dist_value_kind_of(a), dist_value_kind_of(b));
  assert_int_equal(dist_value_size(a), dist_value_size(b));
  for (size_t i = 0; i < dist_value_size(a); ++i) {
    if (dist_value_kind_of(a) == DIST_VALUE_DICT)
      assert_string_equal(dist_value_key(a, i), dist_value_key(b, i));
    assert_same(dist_value_item(a, i), dist_value_item(b, i));
  }
  if (dist_value_kind_of(a) == DIST_VALUE_TEXT) assert_string_equal(dist_value_text(a), dist_value_text(b));
  if (dist_value_kind_of(a) != DIST_VALUE_TENSOR) return;
  dist_tensor x, y;
  assert_ok(dist_value_tensor(a, &x));
  assert_ok(dist_value_tensor(b, &y));
  assert_int_equal(x.dtype, y.dtype);
  assert_int_equal(x.ndim, y.ndim);
  int64_t elements = 1;
  for (int i = 0; i < x.ndim; ++i) {
    assert_int_equal(x.shape[i], y.shape[i]);
    elements *= x.shape[i];
  }
  /* One byte per element is enough to find misplaced elements. */
  if (elements != 0) assert_memory_equal(x.data, y.data, (size_t)elements);
}

static void values_of_every_kind_come_back(void **state) {
  (void)state;
  pair p;
  begin(&p);
  dist_strategy *s = dist_get_strategy();
  static unsigned char bytes[5000];
  for (size_t i = 0; i < sizeof bytes; ++i) bytes[i] = (unsigned char)(i * 31);
  dist_value *leaves[40];
  size_t n = 0;
  for (int32_t dtype = DIST_F16; dtype <= DIST_BOOL; ++dtype) {
    const int64_t shape[] = {3, dtype};
    const dist_tensor tensor = {bytes, dtype, 2, shape, NULL};
    assert_ok(dist_value_create_tensor(s, &tensor, &leaves[n++]));
  }
  const int64_t empty[] = {4, 0};
  const dist_tensor scalar = {bytes, DIST_U8, 0, NULL, NULL};
  const dist_tensor none = {NULL, DIST_F32, 2, empty, NULL};
  assert_ok(dist_value_create_tensor(s, &scalar, &leaves[n++]));
  assert_ok(dist_value_create_tensor(s, &none, &leaves[n++]));
  assert_ok(dist_value_create_none(s, &leaves[n++]));
  leaves[n++] = text("");
  leaves[n++] = text("a text, \xC3\xA4 and \xE2\x82\xAC");
  assert_ok(dist_value_create_list(s, NULL, 0, &leaves[n++]));
  const int64_t rows[] = {2, 3}, two[] = {2};
  const int64_t at[] = {0, 2};
  const dist_tensor values = {bytes, DIST_F32, 2, rows, NULL}, indices = {(void *)at, DIST_I64, 1, two, NULL};
  dist_value *parts[3];
  assert_ok(dist_value_create_tensor(s, &values, &parts[0]));
  assert_ok(dist_value_create_tensor(s, &indices, &parts[1]));
  assert_ok(dist_value_create_none(s, &parts[2]));
  assert_ok(dist_value_create_composite(s, DIST_VALUE_INDEXED_SLICES, parts, 3, &leaves[n++]));
  const char *keys[] = {"b", "a"};
  dist_value *dict = NULL, *list = NULL, *all = NULL, *back = NULL;
  assert_ok(dist_value_create_dict(s, keys, leaves, 2, &dict));
  assert_ok(dist_value_create_list(s, leaves, n, &list));
  dist_value *both[] = {dict, list};
  assert_ok(dist_value_create_tuple(s, both, 2, &all));
  assert_ok(dist_rpc_call(p.client, "echo", all, NULL, &back));
  assert_same(all, back);
  dist_value_release(back);
  for (size_t i = 0; i < n; ++i) {
    assert_ok(dist_rpc_call(p.client, "echo", leaves[i], NULL, &back));
    assert_same(leaves[i], back);
    dist_value_release(back);
    dist_value_release(leaves[i]);
  }
  assert_ok(dist_rpc_call(p.client, "echo", NULL, NULL, &back));
  assert_int_equal(dist_value_kind_of(back), DIST_VALUE_NONE);
  dist_value_release(back);
  for (int i = 0; i < 3; ++i) dist_value_release(parts[i]);
  dist_value_release(dict);
  dist_value_release(list);
  dist_value_release(all);
  /* Values that cannot be sent. */
  dist_value *object = NULL;
  assert_ok(dist_value_wrap_object(s, &p, NULL, &object));
  assert_int_equal(dist_rpc_call(p.client, "echo", object, NULL, &back), DIST_INVALID_ARGUMENT);
  assert_has(dist_last_error(), "cannot be sent to another process");
  dist_value_release(object);
  end(&p);
}

static void a_failure_has_the_words_of_the_method(void **state) {
  (void)state;
  pair p;
  begin(&p);
  dist_value *out = NULL;
  dist_value *words = text("no row 7");
  assert_int_equal(dist_rpc_call(p.client, "fails", words, NULL, &out), DIST_NOT_FOUND);
  assert_has(dist_last_error(), "no row 7");
  assert_has(dist_last_error(), p.address);
  dist_value_release(words);
  assert_int_equal(dist_rpc_call(p.client, "fails", NULL, NULL, &out), DIST_DATA_LOSS);
  assert_has(dist_last_error(), "gave no reason");
  for (dist_status own = -77; own <= 77; own += 154) { /* status codes of the host */
    p.status = own;
    dist_remote_value *other = NULL;
    assert_ok(dist_rpc_begin(p.client, "wait", NULL, NULL, &other));
    assert_fails(dist_rpc_call(p.client, "fails", NULL, NULL, &out), DIST_UNKNOWN,
                 "which libdist does not define");
    /* Other calls are not affected. */
    assert_int_equal(dist_remote_value_ready(other), 0);
    dist_remote_value_release(other);
  }
  assert_int_equal(dist_rpc_call(p.client, "nowhere", NULL, NULL, &out), DIST_NOT_FOUND);
  assert_has(dist_last_error(), "the server has no method nowhere");
  assert_int_equal(dist_rpc_call(p.client, "end", NULL, NULL, &out), DIST_FAILED_PRECONDITION);
  assert_has(dist_last_error(), "this thread is in one of the server's methods");
  dist_value *names = NULL;
  assert_ok(dist_rpc_client_methods(p.client, NULL, &names));
  static const char *const kNames[] = {"add", "echo", "end", "fails", "wait"};
  assert_int_equal(dist_value_size(names), 5);
  for (size_t i = 0; i < 5; ++i) assert_string_equal(dist_value_text(dist_value_item(names, i)), kNames[i]);
  dist_value_release(names);
  end(&p);
}

static void a_call_that_is_begun_is_not_waited_for(void **state) {
  (void)state;
  pair p;
  begin(&p);
  enum { CALLS = 1000 };
  static dist_remote_value *remotes[CALLS];
  float numbers[CALLS];
  for (int i = 0; i < CALLS; ++i) {
    numbers[i] = (float)i;
    dist_value *one = floats(&numbers[i], 1, 1);
    assert_ok(dist_rpc_begin(p.client, "echo", one, NULL, &remotes[i]));
    dist_value_release(one);
  }
  for (int i = CALLS; i-- > 0;) {
    dist_value *value = NULL;
    dist_tensor got;
    assert_ok(dist_remote_value_get(remotes[i], -1, &value));
    assert_ok(dist_value_tensor(value, &got));
    assert_true(*(float *)got.data == numbers[i]);
    assert_int_equal(dist_remote_value_ready(remotes[i]), 1);
    dist_value *again = NULL;
    assert_ok(dist_remote_value_get(dist_remote_value_retain(remotes[i]), 0, &again));
    assert_ptr_equal(value, again);
    dist_value_release(value);
    dist_value_release(again);
    dist_remote_value_release(remotes[i]);
    dist_remote_value_release(remotes[i]);
  }
  end(&p);
}

static void waiting_ends(void **state) {
  (void)state;
  pair p;
  begin(&p);
  dist_rpc_call_options options = DIST_RPC_CALL_OPTIONS_INIT;
  dist_value *out = NULL;
  /* The call's own deadline, which the method notices. */
  options.timeout_ns = 1000000;
  assert_int_equal(dist_rpc_call(p.client, "wait", NULL, &options, &out), DIST_DEADLINE_EXCEEDED);
  assert_has(dist_last_error(), "no answer in time");
  /* Checking whether the result is ready cancels nothing. */
  dist_remote_value *remote = NULL;
  assert_ok(dist_rpc_begin(p.client, "wait", NULL, NULL, &remote));
  const int inside = atomic_load(&p.at.inside);
  assert_int_equal(dist_remote_value_get(remote, 0, &out), DIST_DEADLINE_EXCEEDED);
  assert_has(dist_last_error(), "The call continues to run");
  assert_int_equal(dist_remote_value_ready(remote), 0);
  /* A cancel object, and cancelling the call itself. */
  dist_cancel *cancel = NULL;
  assert_ok(dist_cancel_create(NULL, &cancel));
  options = (dist_rpc_call_options)DIST_RPC_CALL_OPTIONS_INIT;
  options.cancel = cancel;
  dist_remote_value *other = NULL;
  assert_ok(dist_rpc_begin(p.client, "wait", NULL, &options, &other));
  await(&p.at.inside, inside + 1);
  assert_ok(dist_cancel_signal(cancel, "the user left"));
  assert_int_equal(dist_remote_value_get(other, -1, &out), DIST_CANCELLED);
  assert_has(dist_last_error(), "the user left");
  dist_remote_value_release(other);
  assert_int_equal(dist_rpc_begin(p.client, "wait", NULL, &options, &other), DIST_CANCELLED);
  dist_cancel_destroy(cancel);
  dist_remote_value_cancel(remote);
  assert_int_equal(dist_remote_value_get(remote, -1, &out), DIST_CANCELLED);
  dist_remote_value_release(remote);
  /* A result that has been released. */
  assert_ok(dist_rpc_begin(p.client, "wait", NULL, NULL, &remote));
  dist_remote_value_release(remote);
  /* Destroying the client. */
  assert_ok(dist_rpc_begin(p.client, "wait", NULL, NULL, &remote));
  dist_rpc_client_destroy(p.client);
  assert_int_equal(dist_remote_value_get(remote, -1, &out), DIST_CANCELLED);
  assert_has(dist_last_error(), "the client has been closed");
  dist_remote_value_release(remote);
  p.client = NULL;
  end(&p);
  /* Every method that was running has noticed that its caller no longer waits. */
  assert_int_equal(atomic_load(&p.at.cancelled), atomic_load(&p.at.inside));
}

static void the_queue_is_bounded(void **state) {
  (void)state;
  dist_rpc_server_options options = DIST_RPC_SERVER_OPTIONS_INIT;
  options.num_threads = 2;
  options.max_queued = 3;
  pair p;
  begin_with(&p, &options);
  dist_remote_value *remotes[6];
  dist_value *out = NULL;
  for (int i = 0; i < 2; ++i) assert_ok(dist_rpc_begin(p.client, "wait", NULL, NULL, &remotes[i]));
  await(&p.at.inside, 2);
  for (int i = 2; i < 6; ++i) assert_ok(dist_rpc_begin(p.client, "wait", NULL, NULL, &remotes[i]));
  assert_int_equal(dist_remote_value_get(remotes[5], -1, &out), DIST_RESOURCE_EXHAUSTED);
  assert_has(dist_last_error(), "too many calls wait for a server thread");
  atomic_store(&p.at.open, 1);
  for (int i = 0; i < 6; ++i) {
    if (i < 5) {
      assert_ok(dist_remote_value_get(remotes[i], -1, &out));
      dist_value_release(out);
    }
    dist_remote_value_release(remotes[i]);
  }
  end(&p);
}

static void a_server_that_ends_ends_its_calls(void **state) {
  (void)state;
  dist_rpc_server_options options = DIST_RPC_SERVER_OPTIONS_INIT;
  options.num_threads = 1;
  pair p;
  begin_with(&p, &options);
  dist_remote_value *running = NULL, *queued = NULL;
  dist_value *out = NULL;
  assert_ok(dist_rpc_begin(p.client, "wait", NULL, NULL, &running));
  await(&p.at.inside, 1);
  assert_ok(dist_rpc_begin(p.client, "wait", NULL, NULL, &queued));
  /* The call has arrived when an empty call after it finds its place in the queue taken. */
  dist_rpc_call_options soon = DIST_RPC_CALL_OPTIONS_INIT;
  soon.timeout_ns = 50000000;
  assert_int_equal(dist_rpc_call(p.client, "echo", NULL, &soon, &out), DIST_DEADLINE_EXCEEDED);
  assert_ok(dist_rpc_server_destroy(p.server));
  assert_int_equal(dist_remote_value_get(running, -1, &out), DIST_CANCELLED);
  assert_int_equal(dist_remote_value_get(queued, -1, &out), DIST_UNAVAILABLE);
  dist_remote_value_release(running);
  dist_remote_value_release(queued);
  /* No server is running now, which the message states. */
  soon.timeout_ns = 300000000;
  dist_status status = DIST_UNAVAILABLE; /* of calls that began before the client noticed the end */
  while (status == DIST_UNAVAILABLE) status = dist_rpc_call(p.client, "echo", NULL, &soon, &out);
  assert_int_equal(status, DIST_DEADLINE_EXCEEDED);
  assert_has(dist_last_error(), "cannot be reached");
  /* Another server listens at the address, and the same client reaches it. */
  assert_ok(dist_rpc_server_create("grpc", p.address, NULL, &p.server));
  register_all(&p);
  assert_ok(dist_rpc_server_start(p.server));
  assert_ok(dist_rpc_call(p.client, "echo", NULL, NULL, &out));
  dist_value_release(out);
  end(&p);
}

/* Many threads use one client. */
static void *call_often(void *given) {
  pair *p = given;
  for (int i = 0; i < 200; ++i) {
    float number = (float)i;
    dist_value *one = floats(&number, 1, 1);
    dist_value *back = NULL;
    dist_tensor got;
    assert_ok(dist_rpc_call(p->client, "echo", one, NULL, &back));
    assert_ok(dist_value_tensor(back, &got));
    assert_true(*(float *)got.data == number);
    dist_value_release(one);
    dist_value_release(back);
  }
  return NULL;
}

static void threads_share_a_client(void **state) {
  (void)state;
  pair p;
  begin(&p);
  pthread_t threads[8];
  for (int i = 0; i < 8; ++i) assert_int_equal(pthread_create(&threads[i], NULL, call_often, &p), 0);
  for (int i = 0; i < 8; ++i) pthread_join(threads[i], NULL);
  end(&p);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_method_answers),
      cmocka_unit_test(values_of_every_kind_come_back),
      cmocka_unit_test(a_failure_has_the_words_of_the_method),
      cmocka_unit_test(a_call_that_is_begun_is_not_waited_for),
      cmocka_unit_test(waiting_ends),
      cmocka_unit_test(the_queue_is_bounded),
      cmocka_unit_test(a_server_that_ends_ends_its_calls),
      cmocka_unit_test(threads_share_a_client),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
