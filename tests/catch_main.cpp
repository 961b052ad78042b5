// SPDX-License-Identifier: MIT
#include "catch_session.hpp"

int main(int argc, char** argv) { return catch_session(argc, argv); }
