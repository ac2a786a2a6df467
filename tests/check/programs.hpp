// SPDX-License-Identifier: Apache-2.0
// Names that the programs in the C++ headers leave to the reader; see programs.py.
#include <fstream>
#include <functional>
#include <iostream>

#include <dist/dist.hpp>

extern dist::strategy strategy;
extern dist::replica replica;
extern std::vector<float> numbers, gradient, initial, zeros;
extern int steps;
extern std::function<void(dist::replica)> step, train_step;
std::vector<float> gradient_of(int32_t replica_id);
std::vector<float> losses_of(int32_t replica_id);
void prepare_next_batch();
void train();

// ---- dist/experimental/coordinator.hpp
extern dist::value batch;

// ---- dist/experimental/rpc.hpp
extern dist::value given;
dist::value twice(const dist::value& number);

// ---- dist/experimental/server.hpp
dist::value gradient_of(const dist::value& w, const dist::value& batch);

// ---- dist/hpp/batch.hpp
struct cache {
  explicit cache(void* question);
  bool is_complete() const;
};
struct token {};
token decode(cache& mine);
void send(const token& next);
extern void* question;

// ---- dist/hpp/budget.hpp
struct pool_of_threads {
  bool try_post(dist::task task);
};
extern pool_of_threads threads;

// ---- dist/hpp/checkpoint.hpp
extern dist::variable weights, bias;

// ---- dist/hpp/cluster.hpp
void save();

// ---- dist/hpp/cross_replica.hpp
extern std::function<dist::value(dist::replica, const dist::value&)> step;
extern dist::value batch;

// ---- dist/hpp/dataset.hpp
extern std::function<dist::value(dist::replica, const dist::value&)> step;
extern dist::const_tensor features, labels;

// ---- dist/hpp/mesh.hpp
dist::value next_image(dist::replica replica);
dist::value blur(dist::replica device, const dist::value& part);

// ---- dist/hpp/run.hpp
extern dist::value batch;
dist::value loss_of(dist::replica replica, const dist::value& batch);

// ---- dist/hpp/serve.hpp
struct model {
  explicit model(const char* name);
};
struct question {
  void answer(dist::replica here);
};
extern question* asked;
void answer(model& with);
void respond(void* asked);

// ---- dist/hpp/version.hpp
struct model {};
model load(const char* name);
void answer(const model& with);

// ---- dist/hpp/workers.hpp
bool train(dist::strategy& strategy);
