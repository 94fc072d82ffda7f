//! "Is typing" for as long as work goes on.
