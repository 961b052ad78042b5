// SPDX-License-Identifier: MIT
#define CATCH_CONFIG_RUNNER
#include "catch.hpp"

#include "catch_session.hpp"

int catch_session(int argc, char** argv) { return Catch::Session().run(argc, argv); }
