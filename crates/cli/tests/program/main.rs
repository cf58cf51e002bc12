//! The program as a user meets it: arguments in, text and exit code out.

mod analyse;
mod bad_robot_files;
mod brake;
mod common;
mod devices;
mod disturbances;
mod doctor;
mod explain;
mod hold;
mod homing;
mod interference;
mod measure;
mod measure_motion;
mod measure_tasks;
mod missing_interface;
mod observer;
mod real_images;
mod record;
mod robots;
mod run;
mod scan;
mod sdo;
mod seam;
mod simulate;
mod top;
mod wire;
