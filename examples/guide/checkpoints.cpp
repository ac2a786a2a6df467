// SPDX-License-Identifier: Apache-2.0
//
// checkpoints.c in C++: saves a checkpoint after each step, keeps the last two, and continues with more replicas.
//
//     c++ -std=c++17 checkpoints.cpp $(pkg-config --cflags --libs dist) -o checkpoints && ./checkpoints [PREFIX]
#include <algorithm>
#include <cstdio>
#include <dist/dist.hpp>
#include <filesystem>
#include <string>
#include <vector>

namespace fs = std::filesystem;

constexpr std::size_t kept = 2;

// The checkpoints with this prefix, the latest one last.
std::vector<fs::path> checkpoints(const fs::path &prefix) {
  const std::string start = prefix.filename().string() + "-";
  std::vector<fs::path> found;
  for (const fs::directory_entry &entry : fs::directory_iterator(fs::absolute(prefix).parent_path())) {
    const fs::path &path = entry.path();
    if (path.filename().string().rfind(start, 0) == 0 && path.extension() == ".safetensors")
      found.push_back(path);
  }
  std::sort(found.begin(), found.end());
  return found;
}

int step_of(const fs::path &path) {
  const std::string name = path.stem().string();
  return std::stoi(name.substr(name.rfind('-') + 1));
}

fs::path path_of(const fs::path &prefix, int step) {
  const std::string digits = std::to_string(step);
  return prefix.string() + "-" + std::string(6 - digits.size(), '0') + digits + ".safetensors";
}

void train(const fs::path &prefix, int replicas, int last_step) {
  const dist::strategy strategy(replicas);
  const double zero = 0;
  dist_variable_options options = DIST_VARIABLE_OPTIONS_INIT;
  options.name = "w";  // its name in the file
  options.aggregation = DIST_AGGREGATION_SUM;
  const dist::variable w(strategy, dist::const_tensor(&zero, {}), options);
  int step = 0;
  if (const auto files = checkpoints(prefix); !files.empty()) {
    dist::checkpoint::load(strategy, files.back().c_str(), {w});
    step = step_of(files.back());
  }
  std::printf("%d replicas start after step %d: w = %g\n", replicas, step,
              *strategy.read(w).tensor().data<double>());
  while (step < last_step) {
    strategy.run([&](dist::replica replica) {  // all replicas together add 1
      const double part = 1.0 / replica.num_replicas();
      replica.assign(w, dist::const_tensor(&part, {}), DIST_ASSIGN_ADD);
    });
    dist::checkpoint::save(strategy, path_of(prefix, ++step).c_str(), {w});
    const auto files = checkpoints(prefix);
    for (std::size_t i = 0; i + kept < files.size(); i++)
      fs::remove(files[i]);  // only after the new one is complete
  }
}

int main(int argc, char **argv) {
  const fs::path prefix = argc > 1 ? argv[1] : "step";
  try {
    train(prefix, 2, 5);
    train(prefix, 4, 7);
    for (const fs::path &path : checkpoints(prefix)) {
      fs::remove(path);
      std::printf("step %d was left\n", step_of(path));
    }
  } catch (const std::exception &error) {
    std::fprintf(stderr, "checkpoints: %s\n", error.what());
    return 1;
  }
  return 0;
}
