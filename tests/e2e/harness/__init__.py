"""What the end-to-end tests are made of: installed SDKs, processes, clients, and a look at toolvane from outside."""
