/* SPDX-License-Identifier: Apache-2.0
 *
 * dist.i: libdist for other languages, in one SWIG interface. It takes constants and options from the C
 * header as they are, and gives each object a thin class; dist_LANGUAGE.i adds how a status, a buffer and an
 * exception look there. What users see is written by hand above it (go/, java/).
 */
#if defined(SWIGJAVA)
%module(directors="1", jniclassname="DistJNI") DistModule
#else
%module(directors="1") cdist
#endif

%{
#include <dist/dist.h>

#include <cstring>
#include <string>
%}
%include <stdint.i>

/* ---- 1. The header: constants and options --------------------------------------------------------------
 * Everything else in it is hidden; section 4 offers functions again, as methods. */
%rename("$ignore", regextarget=1) "^dist_";
%rename(Strategy) dist_strategy;
%rename(Replica) dist_replica;
%rename(StrategyOptions) dist_strategy_options;
%ignore dist_strategy_options::struct_size;
%ignore dist_strategy_options::reserved;
%ignore dist_strategy_options::allocator;
%ignore dist_strategy_options::log;
%ignore dist_strategy_options::log_user_data;
%ignore dist_strategy_options::clock;
%ignore dist_strategy_options::clock_user_data;
%ignore dist_strategy_options::devices;
%ignore dist_strategy_options::num_devices;
%ignore dist_strategy_options::parameter_device;
%ignore dist_strategy_options::communication;
%ignore dist_strategy_options::cross_device;
%ignore dist_strategy_options::functions;
%ignore dist_strategy_options::functions_user_data;
%rename("$ignore", regextarget=1) "^DIST_.*_INIT$";
%ignore DIST_API;
%ignore DIST_NODISCARD;

%nodefaultctor dist_strategy;
%nodefaultdtor dist_strategy;
%nodefaultctor dist_replica;
%nodefaultdtor dist_replica;
%nodefaultctor dist_strategy_options;

#if defined(SWIGJAVA)
%javaconst(1);
#endif
%include <dist/types.h>
%include <dist/dist.h>

/* ---- 2. How a status and a buffer cross, language by language -------------------------------------------
 * After the header, so that only the methods below are changed by it. */
%{
/* This thread's latest error in one piece: the fields of dist_error_info in their order as text, each ended
   by a NUL. In one piece because a second native call may come from another thread (a goroutine moves), and
   would read that one's error. */
static std::string dist_swig_error(dist_status status) {
  dist_error_info info = DIST_ERROR_INFO_INIT;
  if (dist_last_error_info(&info) != DIST_OK) info.message = dist_status_name(status);
  std::string record;
  for (long long number : {(long long)status, (long long)info.worker, (long long)info.replica,
                           (long long)info.collective, (long long)info.group, (long long)info.sequence}) {
    record += std::to_string(number);
    record += '\0';
  }
  for (const char *text : {info.message, info.tag, info.expected, info.received, info.hint}) {
    if (text) record += text;
    record += '\0';
  }
  return record;
}
%}
#if defined(SWIGGO)
%include "dist_go.i"
#elif defined(SWIGJAVA)
%include "dist_java.i"
#endif

/* ---- 3. The callback, and boxes for out parameters ------------------------------------------------------ */
%feature("director") ReplicaBody;
%ignore StrategyBox::value;
%ignore ReplicaBox::value;
%inline %{
/** A replica function: subclass it and override call(), which runs on every replica's thread. It returns
    DIST_OK or what fail() gave; nothing may unwind out of it. */
struct ReplicaBody {
  virtual ~ReplicaBody() {}
  virtual int32_t call(dist_replica *replica) = 0;
};

/** Takes what a create function gives. */
struct StrategyBox {
  StrategyBox() : value(0) {}
  dist_strategy *get() { return value; }
  dist_strategy *value;
};
struct ReplicaBox {
  ReplicaBox() : value(0) {}
  dist_replica *get() { return value; }
  dist_replica *value;
};

/** For a body that failed by itself: `text` becomes what the peers' report says. Returns `status`. */
static int32_t fail(int32_t status, const char *text) { return dist_fail(status, text); }

/** For a body that ends with what libdist told it: that report stays this thread's latest error, fields and
    all, unless it was told to another thread. Returns `status`. */
static int32_t failAsTold(int32_t status, const char *text) {
  return std::strcmp(dist_last_error(), text) == 0 ? status : dist_fail(status, text);
}

static const char *statusName(int32_t status) { return dist_status_name(status); }
static int32_t version() { return dist_version(); }
%}

/* ---- 4. The objects -------------------------------------------------------------------------------------
 * A method without a body calls dist_<object>_<method> itself. Never give a body to a method whose
 * dist_<object>_<method> is in the header: SWIG would make it a C++ overload that calls itself for ever. */
%{
static dist_status dist_swig_call(dist_replica *replica, void *user_data) {
  return static_cast<ReplicaBody *>(user_data)->call(replica);
}

static dist_collective_options dist_swig_options(const char *tag, int64_t timeout_ns) {
  dist_collective_options options = DIST_COLLECTIVE_OPTIONS_INIT;
  options.tag = tag && *tag ? tag : nullptr;
  options.timeout_ns = timeout_ns;
  return options;
}
%}
%extend dist_strategy_options {
  dist_strategy_options() {
    dist_strategy_options *options = new dist_strategy_options;
    dist_strategy_options_init(options, sizeof *options);
    return options;
  }
};

struct dist_strategy {
  %extend {
    static dist_status make(const dist_strategy_options *options, StrategyBox *out) {
      return dist_strategy_create(options, &out->value);
    }
    dist_status destroy();
    int32_t num_replicas();
    dist_status cancel();
    dist_status run(ReplicaBody *body) { return dist_run($self, dist_swig_call, body); }
    dist_status enter(int32_t replica_id, ReplicaBox *out) {
      return dist_replica_enter($self, replica_id, &out->value);
    }
  }
};

/* `data` is one row-major dimension of `count` elements, in place. */
struct dist_replica {
  %extend {
    int32_t id();
    int32_t num_replicas();
    dist_status leave(int32_t status);
    dist_status all_reduce(int32_t op, int32_t dtype, void *data, int64_t count, const char *tag,
                           int64_t timeout_ns) {
      dist_tensor tensor = {data, dtype, 1, &count, nullptr};
      const dist_collective_options options = dist_swig_options(tag, timeout_ns);
      return dist_all_reduce($self, op, &tensor, &tensor, 1, &options);
    }
    dist_status broadcast(int32_t root, int32_t dtype, void *data, int64_t count, const char *tag,
                          int64_t timeout_ns) {
      dist_tensor tensor = {data, dtype, 1, &count, nullptr};
      const dist_collective_options options = dist_swig_options(tag, timeout_ns);
      return dist_broadcast($self, root, &tensor, &tensor, 1, &options);
    }
    dist_status barrier(const char *tag, int64_t timeout_ns) {
      const dist_collective_options options = dist_swig_options(tag, timeout_ns);
      return dist_barrier($self, &options);
    }
  }
};
