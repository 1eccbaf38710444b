//! The whole server from outside, over real sockets.

mod browsers;
mod calls;
mod client;
mod http;
mod lifecycle;
mod operator;
mod versions;
mod wire;
mod world;
