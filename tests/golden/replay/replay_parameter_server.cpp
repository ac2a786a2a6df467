// SPDX-License-Identifier: Apache-2.0
// Area "parameter_server": variables on parameter servers, and a coordinator that schedules closures on
// workers. The recorded cases of one cluster ("ps2w2/...") are one program. The placement of a case's
// variables therefore depends on the number of variables that the program created before.
#include <dist/experimental/coordinator.h>
#include <dist/experimental/server.h>
#include <algorithm>
#include <cstdio>

#include "input_program.hpp"
#include "programs.hpp"
#include "server_program.hpp"

namespace golden {
namespace {

using Shape = std::vector<int64_t>;

// The variables that a case of the recorded program creates.
struct Creation {
  std::string topics;
  std::vector<Shape> shapes;
};

std::string text_of_shape(const Shape& shape) {
  std::string text;
  for (const int64_t size : shape) text += (text.empty() ? "" : "x") + std::to_string(size);
  return text;
}

// Returns the creations in the order of the program.
std::vector<Creation> recorded_program(int64_t num_ps) {
  std::vector<Creation> program{
      {"round_robin_scalars", std::vector<Shape>(static_cast<std::size_t>(2 * num_ps + 1))}};
  for (const Shape& shape :
       std::initializer_list<Shape>{{7, 2}, {1, 3}, {num_ps + 1}, {12}, {2, 5}, {0, 2}, {5, 1, 2}})
    program.push_back({"sharded/" + text_of_shape(shape), {shape}});
  program.push_back({"round_robin_continues_after_sharded", {Shape{}}});
  program.push_back({"schedule_join_fetch", {Shape{}}});
  return program;
}

// An iterator over a dataset. Each worker has its own.
struct OwnIterator {
  Dataset dataset;
  Iterator iterator;
};

// "range(4) on every worker": 4
int64_t size_of_range(Replay& replay) {
  int size = 0;
  int end = 0;
  const std::string text(replay.text("dataset"));
  if (std::sscanf(text.c_str(), "range(%d) on every worker%n", &size, &end) != 1 ||
      static_cast<std::size_t>(end) != text.size())
    replay.unknown("dataset \"" + text + "\"");
  return size;
}

class Play {
 public:
  explicit Play(Replay& replay)
      : replay_(replay),
        num_ps_(member(replay.strategy_description(), "num_ps").GetInt()),
        servers_(replay, replay.has("num_shards") ? replay.input("num_shards").GetInt() : num_ps_ + 1,
                 closures()) {
    if (replay.has("partitioner") && replay.text("partitioner") != "FixedShards")
      replay.unknown("partitioner");
    create_what_came_before();
  }

  void end() { servers_.end(); }

  // ---- Variables

  void scalars() {
    if (replay_.fn() != "2*num_ps+1 scalar variables created in scope, in order") replay_.unknown("fn");
    std::vector<Json> devices;
    std::vector<std::string> classes;
    for (int i = 0; i < 2 * num_ps_ + 1; ++i) {
      const std::string name = servers_.create(replay_.scalar("float32", i));
      devices.push_back(replay_.json(std::string_view(part_of(name, 0).device)));
      classes.emplace_back(class_of(name));
    }
    std::sort(classes.begin(), classes.end());
    classes.erase(std::unique(classes.begin(), classes.end()), classes.end());
    std::vector<Json> texts;
    for (const std::string& one : classes) texts.push_back(replay_.json(std::string_view(one)));
    replay_.record("devices", replay_.array(std::move(devices)));
    replay_.record("classes", replay_.array(std::move(texts)));
    replay_.record("num_replicas_in_sync", replay_.json(dist_strategy_num_replicas(servers_.strategy())));
  }

  void sharded() {
    if (replay_.text("initial") != "arange, row-major") replay_.unknown("initial");
    Shape shape;
    for (const Json& size : replay_.input("shape").GetArray()) shape.push_back(size.GetInt64());
    const std::string name = servers_.create(arange(shape));
    const Value whole = servers_.read(name);
    replay_.record("class", replay_.json(class_of(name)));
    const int64_t n = num_parts(name);
    if (n == 1) {
      replay_.record("device", replay_.json(std::string_view(part_of(name, 0).device)));
      return replay_.record("value", whole);
    }
    std::vector<Json> shards;
    for (int64_t i = 0; i < n; ++i) {
      const Part part = part_of(name, i);
      shards.push_back(object(replay_, "device", replay_.json(std::string_view(part.device)), "value",
                              replay_.encode(rows_of(whole, shape, part))));
    }
    replay_.record("shards", replay_.array(std::move(shards)));
  }

  void one_more() {
    const std::string name = servers_.create(replay_.scalar("float32", 0));
    replay_.record("device", replay_.json(std::string_view(part_of(name, 0).device)));
  }

  // ---- Closures

  void schedule_join_fetch() {
    int n = 0;
    int last = 0;
    int end = 0;
    const std::string fn(replay_.fn());
    if (std::sscanf(fn.c_str(), "%d closures: v.assign_add(x); return x*2; x = 1..%d%n", &n, &last, &end) !=
            2 ||
        static_cast<std::size_t>(end) != fn.size() || n != last)
      replay_.unknown("fn \"" + fn + "\"");
    variable_ = servers_.create(replay_.scalar("float32", 0));
    std::vector<Remote> remotes;
    for (int x = 1; x <= n; ++x)
      remotes.push_back(servers_.schedule("add_and_double", replay_.scalar("float32", x)));
    servers_.join();
    std::vector<Json> each;
    for (const Remote& one : remotes) each.push_back(number(fetch(one)));
    std::vector<Json> all;
    for (const Value& value : fetch_all(remotes)) all.push_back(number(value));
    replay_.record("fetch", replay_.array(std::move(each)));
    replay_.record("fetch_nest", replay_.array(std::move(all)));
    replay_.record("variable", number(servers_.read(variable_)));
    replay_.record("done", replay_.json(servers_.done()));
  }

  void failing_closure() {
    if (replay_.fn() != "one closure raises InvalidArgumentError; then join, fetch, schedule, join")
      replay_.unknown("fn");
    const Remote failed = schedule_failing("boom in closure");
    replay_.record("join", try_join());
    replay_.record("fetch_failed", replay_.attempt([&] { return number(fetch(failed)); }));
    replay_.record("schedule_after",
                   replay_.attempt([&] { return replay_.json(bool{servers_.schedule("five")}); }));
    replay_.record("join_after", try_join());
    replay_.record("done_after", replay_.attempt([&] { return replay_.json(servers_.done()); }));
  }

  // TensorFlow traces a function when it is scheduled for the first time. In the meantime the previous
  // closure has failed, so that its error is raised there, and the program only records the error of join().
  // Here, the program waits for the failure.
  void failing_closure_with_others() {
    const Remote failed = schedule_failing("boom in closure");
    await_failure(failed);
    for (int i = 0; i < 5; ++i)
      replay_.attempt([&] { return replay_.json(bool{servers_.schedule("five")}); });
    replay_.record("join", try_join());
  }

  void usable_after_failure() { replay_.record("fetch", number(fetch(servers_.schedule("six")))); }

  void error_in_later_calls() {
    if (replay_.fn() !=
        "schedule(bad); wait 1 s; done(); schedule(ok); join(); join(); fetch of the failed one")
      replay_.unknown("fn");
    const Remote failed = schedule_failing("first");
    await_failure(failed);  // the recorded program waits one second for it
    replay_.record("done", replay_.attempt([&] { return replay_.json(servers_.done()); }));
    replay_.record("schedule_second",
                   replay_.attempt([&] { return replay_.json(bool{servers_.schedule("one")}); }));
    replay_.record("join", try_join());
    replay_.record("join_again", try_join());
    replay_.record("fetch_failed", replay_.attempt([&] { return replay_.json(!fetch(failed)); }));
  }

  // Workers can run only tf.functions; in C, only closures that the servers have registered.
  void plain_function(bool fetched) {
    const Remote remote = servers_.schedule("a plain function");
    if (fetched) return replay_.record_whole(fetch(remote));
    servers_.join();
    replay_.record_whole(replay_.null());
  }

  void not_callable() { replay_.record_whole(fetch(servers_.schedule(nullptr))); }

  void join(bool and_done) {
    replay_.record("join", try_join());
    if (and_done) replay_.record("done", replay_.json(servers_.done()));
  }

  void per_worker_dataset() {
    int n = 0;
    int end = 0;
    const std::string fn(replay_.fn());
    if (std::sscanf(fn.c_str(), "%d closures: next(iterator)%n", &n, &end) != 1 ||
        static_cast<std::size_t>(end) != fn.size())
      replay_.unknown("fn \"" + fn + "\"");
    check(dist_coordinator_create_per_worker(servers_.get(), "iterator", "make_iterator", nullptr));
    std::vector<Remote> remotes;
    for (int i = 0; i < n; ++i) remotes.push_back(servers_.schedule("next"));
    servers_.join();
    std::vector<int64_t> numbers;
    for (const Value& value : fetch_all(remotes))
      numbers.push_back(static_cast<int64_t>(Replay::number_of(value.get())));
    std::sort(numbers.begin(), numbers.end());
    std::vector<Json> sorted;
    for (const int64_t one : numbers) sorted.push_back(replay_.json(one));
    replay_.record("fetched_sorted", replay_.array(std::move(sorted)));
  }

  // ---- The strategy of a coordinator

  // In C, remote values have a separate type, so a program that fetches a structure leaves values of other
  // types unchanged.
  void fetch_non_remote() { replay_.record_whole(replay_.decode(replay_.input("value"))); }

  void run_outside() {
    if (replay_.fn() != "strategy.run(lambda: 1)") replay_.unknown("fn");
    replay_.record("result", run(servers_.strategy(), [&](dist_replica*, dist_value*, dist_value*) {
                     return replay_.scalar("int32", 1);
                   }));
  }

  void reduce_outside() {
    replay_.record("result", reduce(servers_.strategy(), DIST_REDUCE_SUM, replay_.scalar("float32", 3)));
  }

  // A strategy has one coordinator, and a coordinator has one strategy, whose coordinator it is.
  bool is_its_coordinator() {
    Coordinator second;
    check(dist_coordinator_create(servers_.strategy(), nullptr, second.out()));
    return second.get() == servers_.get();
  }

  void of_other_strategy() {
    Coordinator other;
    check(dist_coordinator_create(dist_get_strategy(), nullptr, other.out()));
    replay_.record_whole(replay_.null());
  }

 private:
  struct Part {
    std::string device;
    int64_t begin = 0;
    int64_t rows = 0;
  };

  Closures closures() {
    const auto constant = [this](double value) {
      return [this, value](dist_closure*, dist_value*) { return replay_.scalar("float32", value); };
    };
    Closures all{{"one", constant(1)}, {"five", constant(5)}, {"six", constant(6)}};
    all["add_and_double"] = [this](dist_closure* closure, dist_value* x) {
      check(dist_closure_assign(closure, variable_.c_str(), DIST_ASSIGN_ADD, x));
      return replay_.map(x, [](double number) { return 2 * number; });
    };
    // tf.debugging.assert_equal(x, 2, message)
    all["assert_two"] = [](dist_closure*, dist_value* arguments) {
      if (Replay::number_of(dist_value_item(arguments, 0)) != 2)
        raise(DIST_INVALID_ARGUMENT, dist_value_text(dist_value_item(arguments, 1)));
      return Value::share(dist_value_item(arguments, 0));
    };
    all["make_iterator"] = [this](dist_closure*, dist_value*) { return make_iterator(); };
    all["next"] = [](dist_closure* closure, dist_value*) {
      Value own;
      check(dist_closure_per_worker(closure, "iterator", own.out()));
      Value element;
      check(dist_iterator_next(static_cast<OwnIterator*>(dist_value_object(own.get()))->iterator.get(),
                               element.out()));
      return element;
    };
    return all;
  }

  // iter(tf.data.Dataset.range(n)) on the worker that runs this closure.
  Value make_iterator() {
    dist_strategy* const strategy = dist_get_strategy();
    const dist_dataset_options options = DIST_DATASET_OPTIONS_INIT;
    const int64_t end = size_of_range(replay_);
    auto own = std::make_unique<OwnIterator>();
    own->dataset = source_dataset(
        strategy,
        [this, end](int64_t index) {
          return index < end ? replay_.scalar("int64", static_cast<double>(index)) : Value();
        },
        options);
    own->iterator = iterate(own->dataset);
    Value wrapped;
    check(dist_value_wrap_object(
        strategy, own.get(), [](void* object) { delete static_cast<OwnIterator*>(object); }, wrapped.out()));
    static_cast<void>(own.release());
    return wrapped;
  }

  // Creates all variables that the program had created before this case.
  void create_what_came_before() {
    const std::vector<Creation> program = recorded_program(num_ps_);
    const bool creates = std::any_of(program.begin(), program.end(),
                                     [&](const Creation& one) { return one.topics == replay_.topics(); });
    if (!creates && replay_.topic(0) == "sharded") replay_.unknown("a variable of another program");
    for (const Creation& one : program) {
      if (one.topics == replay_.topics()) return;
      for (const Shape& shape : one.shapes) {
        try {
          servers_.create(arange(shape));
        } catch (const Failed& failed) {
          // This error was the answer of an earlier case, after which the program continued.
          if (failed.status != DIST_INVALID_ARGUMENT) throw;
        }
      }
    }
  }

  Value arange(const Shape& shape) {
    int64_t size = 1;
    for (const int64_t one : shape) size *= one;
    std::vector<double> numbers;
    for (int64_t i = 0; i < size; ++i) numbers.push_back(static_cast<double>(i));
    return replay_.tensor(DIST_F32, shape, numbers);
  }

  int64_t num_parts(const std::string& name) const {
    dist_tensor spec;
    int64_t n = 0;
    check(dist_coordinator_variable_spec(servers_.get(), name.c_str(), &spec, &n));
    return n;
  }
  // Returns the class that TensorFlow uses for this variable.
  std::string_view class_of(const std::string& name) const {
    return num_parts(name) == 1 ? "CachingVariable" : "ShardedVariable";
  }
  Part part_of(const std::string& name, int64_t index) const {
    Part part;
    const char* device = nullptr;
    check(dist_coordinator_variable_part(servers_.get(), name.c_str(), index, &device, &part.begin,
                                         &part.rows));
    part.device = device;
    return part;
  }
  Value rows_of(const Value& whole, const Shape& shape, const Part& part) {
    const std::vector<double> numbers = Replay::numbers(whole.get());
    const auto row = static_cast<std::ptrdiff_t>(numbers.size()) / shape[0];
    const auto begin = numbers.begin() + part.begin * row;
    Shape own = shape;
    own[0] = part.rows;
    return replay_.tensor(DIST_F32, own, {begin, begin + part.rows * row});
  }

  Remote schedule_failing(std::string_view message) {
    return servers_.schedule("assert_two",
                             replay_.list({replay_.scalar("int32", 1), replay_.string(message)}));
  }
  static void await_failure(const Remote& remote) {
    try {
      fetch(remote);
    } catch (const Failed&) {
      return;
    }
    raise(DIST_UNKNOWN, "the closure has not failed");
  }
  // Returns the result of coordinator.join().
  Json try_join() {
    return replay_.attempt([&] {
      servers_.join();
      return replay_.null();
    });
  }

  // coordinator.fetch(remotes)
  static std::vector<Value> fetch_all(const std::vector<Remote>& remotes) {
    std::vector<Value> values;
    for (const Remote& one : remotes) values.push_back(fetch(one));
    return values;
  }
  // float(value)
  Json number(const Value& value) { return replay_.json(Replay::number_of(value.get())); }

  Replay& replay_;
  int32_t num_ps_;
  std::string variable_;  // the variable of the closure that adds
  Servers servers_;
};

void play_topic(Replay& replay, Play& play) {
  const std::string& topics = replay.topics();
  if (topics == "round_robin_scalars") return play.scalars();
  if (replay.topic(0) == "sharded") return play.sharded();
  if (topics == "round_robin_continues_after_sharded") return play.one_more();
  if (topics == "schedule_join_fetch") return play.schedule_join_fetch();
  if (topics == "failing_closure") return play.failing_closure();
  if (topics == "failing_closure_with_others_queued") return play.failing_closure_with_others();
  if (topics == "usable_after_failure") return play.usable_after_failure();
  if (topics == "error_raised_by_later_calls") return play.error_in_later_calls();
  if (topics == "schedule_python_function") return play.plain_function(true);
  if (topics == "schedule_python_raises") return play.plain_function(false);
  if (topics == "schedule_not_callable") return play.not_callable();
  if (topics == "join_again") return play.join(false);
  if (topics == "join_empty") return play.join(true);
  if (topics == "per_worker_dataset") return play.per_worker_dataset();
  if (topics == "fetch_non_remote") return play.fetch_non_remote();
  if (topics == "run_outside_schedule") return play.run_outside();
  if (topics == "reduce") return play.reduce_outside();
  if (topics == "strategy_property") return replay.record("is_s", replay.json(play.is_its_coordinator()));
  if (topics == "second_coordinator_same_strategy")
    return replay.record("same_object", replay.json(play.is_its_coordinator()));
  if (topics == "coordinator_of_other_strategy") return play.of_other_strategy();
  replay.unknown("topic " + topics);
}

}  // namespace

void replay_parameter_server(Replay& replay) {
  Play play(replay);
  try {
    play_topic(replay, play);
  } catch (const Failed&) {
    play.end();
    throw;
  }
  play.end();
}

}  // namespace golden
