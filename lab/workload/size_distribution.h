// Flow sizes as published cumulative distributions: built in, or read from the files the field passes around.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "net/random.h"

namespace heddle::lab {

// Sizes between two points are equally likely (linear interpolation of the cumulative distribution), as in the traffic
// generators of HPCC and ConWeave. Two points of one size are a step.
class SizeDistribution {
 public:
  struct Point {
    double bytes;
    double probability;  // that a flow is at most this large, 0 … 1
  };

  // Points in ascending order of both columns, from probability 0 to 1. `where` starts the text of an error.
  SizeDistribution(std::string name, std::vector<Point> points, const std::string& where = "");

  // Every flow has this size.
  static SizeDistribution constant(uint64_t bytes);

  const std::string& name() const { return name_; }
  const std::vector<Point>& points() const { return points_; }

  // Expected size in bytes: the sum over the segments of (midpoint × probability).
  double mean() const { return mean_; }

  // The size below which a share `probability` (0 … 1) of the flows lies.
  double quantile(double probability) const;

  // A random size in whole bytes, at least 1; rounded up, so that the share of sizes up to a point is the point's
  // probability. Takes one number from the stream.
  uint64_t sample(Random& random) const;

 private:
  std::string name_;
  std::vector<Point> points_;
  double mean_ = 0;
};

// The built-in distributions; each source stands beside its points in size_distribution.cc.
//   websearch   DCTCP's search cluster             mean 1.711 MB
//   hadoop      Facebook's Hadoop cluster          mean 120 KB     (also "fb-hadoop")
//   ali-storage Alibaba's RDMA storage, 2019       mean 40.9 KB
//   solar       Alibaba's storage network, 2022    mean 39.4 KB
// Throws bad input that lists the names if there is no such distribution.
const SizeDistribution& find_size_distribution(std::string_view name);
std::vector<std::string> size_distribution_names();

// Reads `bytes percent` (last 100) or `bytes fraction` (last 1) lines; blank lines and lines from '#' on are skipped. A
// third column in the middle, as in ns-2's files, is ignored. `unit_bytes` multiplies the first column (files that
// count packets). Errors are bad input and name `file` and the line.
SizeDistribution read_size_distribution(std::string_view text, const std::string& file, double unit_bytes = 1);

}  // namespace heddle::lab
