#include "lab/workload/size_distribution.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "lab/workload/flow_text.h"
#include "lab/workload/workload.h"
#include "net/error.h"

namespace heddle::lab {
namespace {

using Points = std::vector<SizeDistribution::Point>;

// Web search: M. Alizadeh et al., "Data Center TCP (DCTCP)", SIGCOMM 2010, in the points of the HPCC artifact
// (Y. Li et al., SIGCOMM 2019).
const Points& websearch_points() {
  static const Points points{{0, 0},        {10e3, 0.15}, {20e3, 0.20}, {30e3, 0.30}, {50e3, 0.40}, {80e3, 0.53},
                             {200e3, 0.60}, {1e6, 0.70},  {2e6, 0.80},  {5e6, 0.90},  {10e6, 0.97}, {30e6, 1}};
  return points;
}

// Hadoop: A. Roy et al., "Inside the Social Network's (Datacenter) Network", SIGCOMM 2015, in the points of the HPCC
// artifact.
const Points& hadoop_points() {
  static const Points points{{0, 0},        {100, 0.01},   {200, 0.02},  {300, 0.05},  {350, 0.15},
                             {400, 0.20},   {500, 0.30},   {600, 0.40},  {700, 0.50},  {1e3, 0.60},
                             {2e3, 0.67},   {7e3, 0.70},   {30e3, 0.72}, {50e3, 0.82}, {80e3, 0.87},
                             {120e3, 0.90}, {300e3, 0.95}, {1e6, 0.975}, {2e6, 0.99},  {10e6, 1}};
  return points;
}

// Alibaba storage over RDMA, 2019: Y. Li et al., "HPCC: High Precision Congestion Control", SIGCOMM 2019; also used by
// C. H. Song et al., "Network Load Balancing with In-network Reordering Support for RDMA" (ConWeave), SIGCOMM 2023.
const Points& ali_storage_points() {
  static const Points points{{0, 0},         {4e3, 0.2293},   {8e3, 0.6921},   {16e3, 0.8061}, {32e3, 0.9047},
                             {64e3, 0.9353}, {128e3, 0.9677}, {256e3, 0.9753}, {2e6, 1}};
  return points;
}

// Alibaba's elastic block storage: R. Miao et al., "From Luna to Solar: The Evolutions of the Compute-to-Storage
// Networks in Alibaba Cloud", SIGCOMM 2022, in the points of the ConWeave artifact.
const Points& solar_points() {
  static const Points points{{0, 0},        {4095, 0.00001}, {4096, 0.30},  {16383, 0.35},
                             {16384, 0.50}, {65535, 0.60},   {65536, 0.95}, {262144, 1}};
  return points;
}

void check_points(const Points& points, const std::string& where) {
  const auto refuse = [&](const std::string& why) { throw_bad_input("{}{}", where.empty() ? "" : where + ": ", why); };
  if (points.size() < 2) refuse("a size distribution needs at least two points");
  if (points.front().probability != 0) refuse("the first point's probability must be 0");
  if (std::abs(points.back().probability - 1) > 1e-9) refuse("the last point's probability must be 1 (100 percent)");
  if (points.front().bytes < 0) refuse("sizes are at least 0 bytes");
  if (points.back().bytes < 1 || points.back().bytes > static_cast<double>(kMaxMessageBytes)) {
    refuse(fmt::format("the largest size must lie between 1 and {} bytes", kMaxMessageBytes));
  }
  for (size_t i = 1; i < points.size(); ++i) {
    if (points[i].bytes < points[i - 1].bytes || points[i].probability < points[i - 1].probability) {
      refuse(
          fmt::format("point {} ({} bytes) lies below the one before it: both columns ascend", i + 1, points[i].bytes));
    }
  }
}

}  // namespace

SizeDistribution::SizeDistribution(std::string name, std::vector<Point> points, const std::string& where)
    : name_(std::move(name)), points_(std::move(points)) {
  check_points(points_, where);
  points_.back().probability = 1;
  for (size_t i = 1; i < points_.size(); ++i) {
    mean_ += (points_[i].bytes + points_[i - 1].bytes) / 2 * (points_[i].probability - points_[i - 1].probability);
  }
}

SizeDistribution SizeDistribution::constant(uint64_t bytes) {
  const double size = static_cast<double>(bytes);
  return SizeDistribution(fmt::format("{} bytes", bytes), {{size, 0}, {size, 1}});
}

double SizeDistribution::quantile(double probability) const {
  const auto above = std::upper_bound(points_.begin() + 1, points_.end() - 1, probability,
                                      [](double p, const Point& point) { return p < point.probability; });
  const Point& high = *above;
  const Point& low = *(above - 1);
  if (high.probability <= low.probability) return high.bytes;
  const double share = std::clamp((probability - low.probability) / (high.probability - low.probability), 0.0, 1.0);
  return low.bytes + share * (high.bytes - low.bytes);
}

uint64_t SizeDistribution::sample(Random& random) const {
  return static_cast<uint64_t>(std::max(1.0, std::ceil(quantile(random.uniform()))));
}

const SizeDistribution& find_size_distribution(std::string_view name) {
  static const std::array<SizeDistribution, 4> built_in{
      SizeDistribution("websearch", websearch_points()), SizeDistribution("hadoop", hadoop_points()),
      SizeDistribution("ali-storage", ali_storage_points()), SizeDistribution("solar", solar_points())};
  if (name == "fb-hadoop") name = "hadoop";
  for (const SizeDistribution& distribution : built_in) {
    if (distribution.name() == name) return distribution;
  }
  throw_bad_input("no size distribution \"{}\"; there are {}", name, fmt::join(size_distribution_names(), ", "));
}

std::vector<std::string> size_distribution_names() { return {"websearch", "hadoop", "ali-storage", "solar"}; }

SizeDistribution read_size_distribution(std::string_view text, const std::string& file, double unit_bytes) {
  TextReader reader(text, file);
  Points points;
  std::vector<std::string_view> words;
  while (next_statement(reader, words)) {
    if (words.size() != 2 && words.size() != 3) {
      reader.fail("{} columns; accepted: size and cumulative percent (or share)", words.size());
    }
    const double most = static_cast<double>(kMaxMessageBytes);
    const SizeDistribution::Point point{reader.real(words.front(), "size", 0, most) * unit_bytes,
                                        reader.real(words.back(), "probability", 0, std::nextafter(100.0, 101.0))};
    if (!points.empty() && (point.bytes < points.back().bytes || point.probability < points.back().probability)) {
      reader.fail("lies below the point before; accepted: both columns ascending");
    }
    points.push_back(point);
  }
  if (points.empty()) throw_bad_input("{}: holds no points", file);
  if (points.back().probability > 1 + 1e-9) {
    for (SizeDistribution::Point& point : points) point.probability /= 100;
  }
  return SizeDistribution(file, std::move(points), file);
}

}  // namespace heddle::lab
