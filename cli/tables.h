// Text tables for people, from the JSON views of control/views.h.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace heddle::cli {

using Json = nlohmann::ordered_json;

using Row = std::vector<std::string>;

// Columns as wide as their widest cell; cells that look like numbers are right-aligned.
std::string text_table(const std::vector<Row>& rows);

// The view `what` (ports, queues, routes, paths, drops) as a table with a header line.
std::string table_of(const std::string& what, const Json& view);

// 12345678 → "12.35M"; exact below 10,000.
std::string short_number(double value);

}  // namespace heddle::cli
