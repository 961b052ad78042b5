// SPDX-License-Identifier: MIT
//
// Runs Catch2, for programs that have a main() of their own.
#pragma once

int catch_session(int argc, char** argv);
