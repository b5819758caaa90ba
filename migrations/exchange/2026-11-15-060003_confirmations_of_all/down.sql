DROP INDEX confirmations_of_all;
